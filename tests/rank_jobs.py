"""What ranks run in tests: in a module of its own, so that they can import it."""

import dataclasses
import json
import os
import sys
import time
from itertools import product
from unittest.mock import patch

import numpy as np
import torch.distributed as dist
from torch import nn

from helpers import OWN_RULES, in_double, tiny_job, tiny_task
from ssdfl.cli.main import main
from ssdfl.engine import distributed, make_engine, run
from ssdfl.engine.ranks import find_on_rank_0
from ssdfl.engine.row_exchange import FORBIDDEN, SHARED_MEMORY
from ssdfl.errors import InputError
from ssdfl.experiments import iterate_experiment, run_experiment
from ssdfl.experiments import run as run_module
from ssdfl.learning import OPTIMIZERS, draw_optimizers
from ssdfl.methods import METHODS, RULES, Periodic, drop_devices, drop_links
from ssdfl.records import load_experiment

KINDS = ("mixed", "momentum", "proximal")
SPECS = ("er:n=9,p=0.2,seed=1", "complete:n=6", "star:n=6", "sites:sites=3,size=3,seed=1")


def jobs():
    """Every method and topology, optimizers in turn, and what else makes steps differ."""
    found = {}
    for number, spec in enumerate(SPECS):
        for place, method in enumerate(METHODS):
            kind = KINDS[(number + place) % len(KINDS)]
            found[f"{method} {spec} {kind}"] = tiny_job(method, spec, kind, cycles=2)
    for method, kind in (
        ("ssdfl+atc", "adam"),
        ("sdfl+atc", "effective"),
        ("central+atc", "nesterov"),
    ):
        found[f"{method} sites {kind}"] = tiny_job(
            method, SPECS[-1], kind, cycles=2, learning_rate=0.01
        )
    for rule in RULES:
        job = tiny_job(f"ssdfl+{rule}", SPECS[-1], cycles=2, task=in_double(tiny_task(9)))
        found[f"ssdfl+{rule} sites"] = job
    found["compressed sites"] = tiny_job(
        "sdfl+gt:compressor=int8", SPECS[-1], task=in_double(tiny_task(9))
    )
    for rule in OWN_RULES:
        method = f"sdfl+helpers:{rule}"
        found[f"{method} sites"] = tiny_job(method, SPECS[-1], cycles=2, local_steps=2)
    found["several steps"] = tiny_job(local_steps=3, optimizers="momentum", model="mlp")
    found["whole shards"] = tiny_job("sdfl", batch_size=0)
    found["convolutions"] = tiny_job(task=tiny_task(6, f"{__name__}:small_cnn"), method="sdfl")
    found["dropout"] = tiny_job(task=tiny_task(6, f"{__name__}:with_dropout"), method="sdfl")
    faulty = tiny_job("ssdfl", cycles=4)
    found["links fail"] = dataclasses.replace(
        faulty, schedule=drop_links(faulty.schedule, 0.4, seed=2)
    )
    found["devices fail"] = dataclasses.replace(
        faulty, schedule=drop_devices(faulty.schedule, 0.4, seed=2)
    )
    found["gaps"] = tiny_job(gap_clusters=((0, 1), (2, 3), (4, 5)))
    found["seldom tested"] = tiny_job(evaluate_every=2)
    found["bf16"] = tiny_job(
        task=tiny_task(6, f"{__name__}:small_cnn").in_precision("bf16"), method="sdfl"
    )
    found["mean model tested"] = tiny_job(tested_models="mean")
    return found


def contract_jobs():
    """Every schedule with both basic rules, in 64 bit; each device has another optimizer."""
    task = in_double(tiny_task(len(OPTIMIZERS)))
    rng = np.random.default_rng(5)
    optimizers = sum((draw_optimizers(kind, 1, rng) for kind in OPTIMIZERS), ())
    found = {}
    for method, rule in product(METHODS, ("cta", "atc")):
        job = tiny_job(f"{method}+{rule}", "barbell:size=4", cycles=2, local_steps=2, task=task)
        found[f"{method}+{rule}"] = dataclasses.replace(job, optimizers=optimizers)
    return found


def small_cnn(image_shape, num_classes):
    return nn.Sequential(
        nn.Conv2d(1, 3, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(48, num_classes)
    )


class Pause(nn.Module):
    """Takes time and no computing: a run lasts long enough to be killed, in few steps."""

    def forward(self, inputs):
        time.sleep(0.003)
        return inputs


def unhurried_cnn(image_shape, num_classes):
    return nn.Sequential(Pause(), small_cnn(image_shape, num_classes))


def with_dropout(image_shape, num_classes):
    return nn.Sequential(
        nn.Flatten(), nn.Linear(16, 12), nn.Dropout(0.5), nn.Linear(12, num_classes)
    )


def everyone(state):
    """All devices' parameters."""
    return state.X if state.shares is None else state.shares.everyone(state.X)


def runs_of(some_jobs):
    """In a rank: each job's records and final parameters."""
    found = {}
    for name, job in some_jobs.items():
        cycles = list(run(job, "distributed"))
        found[name] = (
            [dataclasses.asdict(record) for record, _ in cycles],
            everyone(cycles[-1][1]),
        )
    return found


def all_runs():
    """In a rank: records and final parameters of every job."""
    return runs_of(jobs())


def contract_runs():
    """In a rank: the same of every schedule and rule, with all optimizers."""
    return runs_of(contract_jobs())


def some_runs():
    """In a rank: the same of the jobs on sites."""
    return runs_of({name: job for name, job in jobs().items() if "sites" in name})


def finish_experiment():
    """In a rank: go on with the run in the folder that the environment names."""
    experiment = load_experiment(None, json.loads(os.environ["SETTINGS"]))
    run_experiment(experiment, os.environ["FOLDER"], resume=True)


def begin_experiment():
    """In a rank: three cycles of it, and a checkpoint of the last."""
    run_module.SAVE_INTERVAL_S, run_module.SAVING_SHARE = 0.0, 1e9
    experiment = load_experiment(None, json.loads(os.environ["SETTINGS"]))
    for advance in iterate_experiment(experiment, os.environ["FOLDER"]):
        if advance.cycle == 3:
            return


def two_experiments():
    """In a rank of torchrun: one experiment after the other."""
    for k, settings in enumerate(json.loads(os.environ["SETTINGS"])):
        run_experiment(load_experiment(None, settings), f"{os.environ['FOLDER']}-{k}")


def traffic():
    """In a rank: bytes of parameters sent in every step of two cycles."""
    found = {}
    for method in ("ssdfl", "sdfl", "pdfl", "central"):
        job = tiny_job(method, "sites:sites=4,size=3,seed=0", clusters=4)
        engine = make_engine("distributed", job)
        state, sent = engine.begin(None), []
        for t in range(2 * job.steps_per_cycle):
            before, step = engine.exchange.rows.sent_bytes, job.schedule(t)
            X, memory, *_ = engine.advance(state, step, t)
            state = dataclasses.replace(state, X=X, memory=memory, trained=step.train)
            sent.append(engine.exchange.rows.sent_bytes - before)
        found[method] = sent
        engine.close()
    return found


def matrices_built():
    """In a rank: how many matrices it prepares in two periods of 40 steps, each with its own W."""
    job = tiny_job("sdfl", cycles=27, evaluate_every=27)

    def anew(t):
        step = job.schedule(t)
        return dataclasses.replace(step, W=step.W.copy())

    with patch.object(distributed, "Mixing", wraps=distributed.Mixing) as mixing:
        for _ in run(dataclasses.replace(job, schedule=Periodic(anew, 40)), "distributed"):
            pass
    return mixing.call_count


def shared_memory():
    """In a rank: how many ranks it shares memory with, each way, and the files left behind."""
    used, left = {}, {}
    for method in ("ssdfl", "sdfl"):
        job = tiny_job(method, "sites:sites=4,size=3,seed=0", clusters=4)
        engine = make_engine("distributed", job)
        state = engine.begin(None)
        for t in range(job.steps_per_cycle):
            engine.advance(state, job.schedule(t), t)
        used[method] = len(engine.exchange.rows._in) + len(engine.exchange.rows._out)
        dist.barrier()
        engine.close()
        dist.barrier()
        left[method] = list(SHARED_MEMORY.glob(f"ssdfl-{engine.exchange.rows.token}-*"))
    return used, left


def mistakes():
    """In a rank: what it raises when parameters diverge, and when rank 0 finds a mistake."""
    found = []
    job = tiny_job("ssdfl", learning_rate=1e30, optimizers="sgd", model="mlp", cycles=30)
    for work in (lambda: list(run(job, "distributed")), lambda: find_on_rank_0(fail)):
        try:
            work()
        except InputError as error:
            found.append((type(error).__name__, str(error)))
    return found


def everything():
    """In a rank: what all of these give, since to start a rank takes longer than most of them."""
    found = {
        "contract": contract_runs(),
        "matrices": matrices_built(),
        "shared memory left": shared_memory(),
    }
    for carrier, allowed in (("shared memory", "1"), ("messages", "0")):
        with patch.dict(os.environ, {FORBIDDEN: allowed}):
            found[carrier], found[f"traffic by {carrier}"] = all_runs(), traffic()
    return found | {"mistakes": mistakes()}


def fail():
    raise InputError("colour", "red", "blue", "Paint it.")


if __name__ == "__main__":
    run_module.SAVE_INTERVAL_S = 0.0
    main() if sys.argv[1:] else two_experiments()
