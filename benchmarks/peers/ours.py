"""ssdfl itself: its method ``sdfl``, which mixes over the whole network at every step.

python benchmarks/peers/ours.py PROBLEM_FOLDER
"""

import sys
import time
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from problem import Problem, build_model, load_problem, report, since_start
from torch import Tensor

import ssdfl
from ssdfl.engine import Job, run
from ssdfl.graph import load_network
from ssdfl.learning import Dataset, Task, make_task, paper_optimizer
from ssdfl.methods import METHODS, ScheduleInputs

NOTE = "gradients at parameters not yet mixed, as in D-PSGD; writes a record a round"


def task_of(problem: Problem) -> Task:
    """The problem's data and model as ssdfl's task."""
    N, m = problem.labels.shape
    data = Dataset(
        train_inputs=problem.inputs.flatten(0, 1).numpy(),
        train_targets=problem.labels.flatten().numpy(),
        test_inputs=problem.test_inputs.numpy(),
        test_targets=problem.test_labels.numpy(),
        num_classes=problem.settings.num_classes,
    )
    return make_task(build_model(problem), data, np.arange(N * m).reshape(N, m))


@torch.no_grad()
def accuracy(X: Tensor, task: Task) -> float:
    """Test accuracy, averaged over rows of parameters in ssdfl's order."""
    correct = [task.scores(theta, task.test_inputs).argmax(1) == task.test_targets for theta in X]
    return float(torch.stack(correct).float().mean())


def job_of(problem: Problem) -> Job:
    """A cycle per round, one that only mixes, and one that never runs: runs test after their last.

    A step of ssdfl adds local steps to what is mixed, so the last round's are mixed one step later.
    """
    settings = problem.settings
    network = load_network(settings.network)
    job = Job(
        task=task_of(problem),
        network=network,
        schedule=METHODS["sdfl"].schedule(ScheduleInputs(network, (), tau_a=settings.rounds)),
        optimizers=(paper_optimizer(),) * problem.num_devices,
        cycles=settings.rounds + 2,
        steps_per_cycle=1,
        learning_rate=settings.learning_rate,
        batch_size=settings.batch_size,
        local_steps=settings.local_steps,
        evaluate_every=settings.rounds + 2,
        seed=settings.seed,
    )
    np.testing.assert_allclose(job.schedule(0).W.toarray(), problem.W)
    return job


def main() -> None:
    """Run one problem and report."""
    problem = load_problem(Path(sys.argv[1]))
    job = job_of(problem)
    next(run(job))
    startup_s, start = since_start(), time.perf_counter()
    for _, state in islice(run(job), problem.settings.rounds + 1):
        X = state.X
    steady_s = time.perf_counter() - start
    report(
        name="ssdfl",
        version=ssdfl.__version__,
        startup_s=startup_s,
        steady_s=steady_s,
        device_steps=problem.device_steps(problem.settings.rounds),
        accuracy=accuracy(X, job.task),
        note=NOTE,
    )


if __name__ == "__main__":
    main()
