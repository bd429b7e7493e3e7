"""Small networks, tasks and jobs that tests share."""

import os
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from ssdfl.clusters import spectral_bisection
from ssdfl.engine import Job
from ssdfl.experiments import run
from ssdfl.graph import load_network
from ssdfl.learning import build_model, draw_optimizers, iid, make_dataset, make_task
from ssdfl.methods import Message, Moment, Rule, ScheduleInputs, find_method
from ssdfl.records import load_experiment

TOPOLOGY_SPECS = (
    "er:n=9,p=0.2,seed=1",
    "ba:n=9,m=1,seed=1",
    "rgeo:n=9,radius=0.2,seed=1",
    "ws:n=9,k=3,p=0.2,seed=1",
    "complete:n=6",
    "ring:n=7",
    "path:n=5",
    "star:n=6",
    "grid:rows=2,cols=4",
    "torus:rows=3,cols=3",
    "sbm:blocks=2,size=4,p_in=0.9,p_out=0.1,seed=1",
    "barbell:size=4",
    "cliques:cliques=3,size=3",
    "sites:sites=3,size=3,seed=1",
    "gaia",
)


def tiny_data(num_samples=240, classes=4, size=4, seed=0):
    """Images whose class shows in a bright quarter, with noise: learnable in a few steps."""
    rng = np.random.default_rng(seed)
    labels = np.arange(num_samples) % classes
    images = rng.integers(0, 120, size=(num_samples, 1, size, size)).astype(np.uint8)
    for label in range(classes):
        r, c = divmod(label, 2)
        images[labels == label, 0, 2 * r : 2 * r + 2, 2 * c : 2 * c + 2] += 100
    half = num_samples * 3 // 4
    return make_dataset((images[:half], labels[:half]), (images[half:], labels[half:]))


def broken_data():
    """A data set whose author made a mistake."""
    return {}["images"]


def deadly_data():
    """A data set that ends the process that reads it, as a full memory does."""
    os._exit(1)


def mortal_data():
    """A data set that ends the first process that reads it; the environment names its mark."""
    first = Path(os.environ["SSDFL_TEST_FIRST"])
    if not first.exists():
        first.touch()
        os._exit(1)
    return tiny_data()


def often_saved_data():
    """A data set whose reader saves its run as often as it may."""
    run.SAVE_INTERVAL_S = 0.0
    return tiny_data()


def run_saving_often(words):
    """In a process to be killed: an experiment with settings, into a folder."""
    run.SAVE_INTERVAL_S = 0.0
    folder, *settings = words
    run.run_experiment(load_experiment(None, settings), folder)


def gossip(setting):
    """A method of a user's own: mix everywhere while all train."""
    return setting.cycle(intra=setting.all_links, inter=setting.all_links)


class Middle(Rule):
    """A non-linear rule: the coordinate-wise median of own and neighbours' parameters."""

    linear = False

    def send(self, at, theta, move, memory):
        return Message(theta), memory

    def receive(self, at, theta, move, memory, heard):
        medians = theta.clone()
        for inbox in heard.each():
            rows = torch.cat([theta[inbox.places][None], inbox.rows])
            medians[inbox.places] = rows.quantile(0.5, dim=0)
        return move.applied_to(medians), memory


class HeavyBall(Rule):
    """A rule with memory: mix, move, and keep part of the way that the step before went."""

    def init(self, theta):
        return {"before": theta.clone()}

    def send(self, at, theta, move, memory):
        return Message(theta), memory

    def receive(self, at, theta, move, memory, heard):
        after = move.applied_to(heard.mixed) + 0.3 * (theta - memory["before"])
        return after, {"before": theta.clone()}


class Doubled(Rule):
    """A rule whose messages leave after training, are twice as wide, and are remembered."""

    early = False

    def init(self, theta):
        return {"sum": torch.zeros_like(theta)}

    def send(self, at, theta, move, memory):
        total = memory["sum"] + move.value()
        return Message(torch.cat([move.applied_to(theta), total], dim=1)), {"sum": total}

    def receive(self, at, theta, move, memory, heard):
        mixed, total = heard.mixed.chunk(2, dim=1)
        return mixed + 0.1 * (total - memory["sum"]) + 0.1 * move.value(), {"sum": total}


OWN_RULES = ("Middle", "HeavyBall", "Doubled")


def sign_descent(gradient, theta, memory, *, limit=1.0):
    """An optimizer of a user's own: down along the gradient's signs, at most so far."""
    return gradient.sign() * limit, memory


def many_samples():
    """Enough tiny images for thousands of devices."""
    data = tiny_data()
    times = -(-5000 // len(data.train_targets))
    return replace(
        data,
        train_inputs=np.tile(data.train_inputs, (times, 1, 1, 1)),
        train_targets=np.tile(data.train_targets, times),
    )


def tiny_task(num_devices, model="logreg", seed=0, **options):
    data = tiny_data()
    shards = iid(data.train_targets, num_devices, np.random.default_rng(seed))
    return make_task(
        build_model(model, data.input_shape, data.num_classes, seed, options), data, shards
    )


def in_double(task):
    """The task in 64 bit."""
    return replace(
        task,
        model=deepcopy(task.model).double(),
        inputs=task.inputs.double(),
        test_inputs=task.test_inputs.double(),
    )


def tiny_job(
    method="ssdfl", spec="barbell:size=3", optimizers="mixed", clusters=2, model="logreg", **changes
):
    network = load_network(spec)
    inputs = ScheduleInputs(
        network, spectral_bisection(network, clusters), tau_a=2, tau_r=1, seed=3
    )
    found = find_method(method)
    values = {
        "task": tiny_task(network.num_devices, model),
        "network": network,
        "schedule": found.schedule(inputs),
        "rule": found.rule,
        "optimizers": draw_optimizers(optimizers, network.num_devices, np.random.default_rng(5)),
        "cycles": 3,
        "steps_per_cycle": 3,
        "learning_rate": 0.1,
        "batch_size": 8,
        "seed": 7,
    }
    return Job(**(values | changes))


def moment(t=0, device=0, **changes):
    """When one device applies a rule."""
    return Moment(**{"t": t, "devices": np.array([device]), "seed": 0, "rate": 0.1} | changes)


def far_from_three_clusters(inputs, clusters):
    """A score of one's own."""
    return abs(len(clusters) - 3)


def least_conductance(W):
    """The least cut over size of all sets of at most half of the devices, by trying each."""
    n = W.shape[0]
    inside = np.arange(1, 2 ** (n - 1))[:, None] >> np.arange(n) & 1
    cuts = ((inside @ W.toarray()) * (1 - inside)).sum(axis=1)
    sizes = inside.sum(axis=1)
    return float((cuts / np.minimum(sizes, n - sizes)).min())
