"""What ranks run in tests: in a module of its own, so that they can import it."""

import dataclasses

from torch import nn

from helpers import tiny_job, tiny_task
from ssdfl.engine import run
from ssdfl.schedule import METHODS, drop_devices, drop_links

KINDS = ("mixed", "momentum", "proximal")
SPECS = ("er:n=9,p=0.2,seed=1", "complete:n=6", "star:n=6", "sites:sites=3,size=3,seed=1")


def jobs():
    """Every method and topology, optimizers in turn, and what else makes steps differ."""
    found = {}
    for number, spec in enumerate(SPECS):
        for place, method in enumerate(METHODS):
            kind = KINDS[(number + place) % len(KINDS)]
            found[f"{method} {spec} {kind}"] = tiny_job(method, spec, kind, cycles=2)
    found["several steps"] = tiny_job(local_steps=3, optimizers="momentum", model="mlp")
    found["whole shards"] = tiny_job("sdfl", batch_size=0)
    found["convolutions"] = tiny_job(task=tiny_task(6, f"{__name__}:small_cnn"), method="sdfl")
    found["dropout"] = tiny_job(task=tiny_task(6, f"{__name__}:with_dropout"), method="sdfl")
    faulty = tiny_job("ssdfl", cycles=4)
    found["links fail"] = dataclasses.replace(faulty, schedule=drop_links(faulty.schedule, 0.4, seed=2))
    found["devices fail"] = dataclasses.replace(faulty, schedule=drop_devices(faulty.schedule, 0.4, seed=2))
    found["gaps"] = tiny_job(gap_clusters=((0, 1), (2, 3), (4, 5)))
    found["seldom tested"] = tiny_job(evaluate_every=2)
    return found


def small_cnn(image_shape, num_classes):
    return nn.Sequential(nn.Conv2d(1, 3, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(48, num_classes))


def with_dropout(image_shape, num_classes):
    return nn.Sequential(nn.Flatten(), nn.Linear(16, 12), nn.Dropout(0.5), nn.Linear(12, num_classes))


def all_runs():
    """In a rank: each job's records and final parameters."""
    found = {}
    for name, job in jobs().items():
        cycles = list(run(job, "distributed"))
        found[name] = [dataclasses.asdict(record) for record, _ in cycles], cycles[-1][1].whole().X
    return found
