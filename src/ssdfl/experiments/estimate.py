"""Estimate how long runs will take here, from one device's training and testing time."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from ssdfl.engine.reference import ReferenceEngine
from ssdfl.engine.threads import one_thread_each
from ssdfl.engine.training import Kept, train_device
from ssdfl.graph import load_network
from ssdfl.learning import Task, load_data
from ssdfl.preparation import make_job, prepare, testing_interval
from ssdfl.records.config import Experiment
from ssdfl.records.sections import ClustersSection


class Estimator:
    """Estimates the time of runs; measures each kind of work once."""

    def __init__(self, data: Path | None = None) -> None:
        self._data = data
        self._measured: dict[str, tuple[float, float, Task]] = {}

    def seconds(self, experiment: Experiment) -> float:
        """The time of all runs of an experiment on one core, without forming clusters."""
        train_s, test_s, interval = self._times(experiment)
        cycles, devices = experiment.cycles, self._devices(experiment)
        tests = -(-cycles // (experiment.evaluate.every or interval))
        tested = 1 if experiment.evaluate.models == "mean" else devices
        each = devices * cycles * experiment.schedule.tau_a * train_s + tested * tests * test_s
        return each * len(experiment.methods) * len(experiment.seeds)

    def _devices(self, experiment: Experiment) -> int:
        return load_network(experiment.network.spec, default_seed=experiment.seeds[0]).num_devices

    def _times(self, experiment: Experiment) -> tuple[float, float, int]:
        """Seconds of one device's training step and test, and the cycles between tests."""
        network = experiment.network.spec if experiment.training.batch_size == 0 else ""
        parts = (
            experiment.data,
            experiment.model,
            experiment.training,
            experiment.evaluate.samples,
        )
        key = repr((*parts, experiment.engine.precision, network))
        if key not in self._measured:
            one = experiment.model_copy(update={"clusters": ClustersSection(number=1)})
            instance = prepare(one, one.seeds[0], load_data(one.data, self._data))
            job = make_job(one, instance, one.methods[0])  # all methods train and test alike
            engine = ReferenceEngine(job)
            task, theta = job.task, job.task.initial_parameters[None]
            with one_thread_each():
                kept = Kept(job.optimizers[0].kind.init(task.trained(theta)), task.initial_home)
                train_s = min(
                    _timed(lambda: train_device(job, task, theta, kept, 0, 0)) for _ in range(3)
                )
                test_s = min(_timed(lambda: engine.evaluate(theta)) for _ in range(2))
            self._measured[key] = (train_s, test_s, instance.task)
        train_s, test_s, task = self._measured[key]
        return train_s, test_s, testing_interval(experiment, task)


def _timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
