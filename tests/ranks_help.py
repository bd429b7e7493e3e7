"""Run a function in several ranks, as torchrun would, and collect what they return."""

import json
import os
import pickle
from contextlib import suppress
from pathlib import Path

import torch
from torch.distributed import TCPStore

from forked import Forked
from ssdfl.engine.checkpoint import load_parameters
from ssdfl.engine.ranks import joined
from ssdfl.errors import import_object

TESTS = Path(__file__).parent
TINY = [
    "data.name=helpers:tiny_data",
    "data.labels_per_device=2",
    "network.spec=barbell:size=3",
    "clusters.number=2",
    "model.name=logreg",
    "cycles=6",
    "evaluate.every=2",
    "seeds=[0]",
    'methods=["ssdfl", "stc"]',
]


def environment(**more):
    fixed = {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    return {**os.environ, **fixed, **more}


def in_ranks(function, number, folder, **more):
    """What ``module:function`` returns in each of so many ranks."""
    folder = Path(folder)
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    common = {"WORLD_SIZE": str(number), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(store.port)}
    common["TORCHELASTIC_USE_AGENT_STORE"] = "True"
    ranks = []
    for place in range(number):
        variables = environment(RANK=str(place), LOCAL_RANK=str(place), **common, **more)
        with (folder / f"said-{place}").open("w") as said:
            words = (function, folder / f"result-{place}")
            ranks.append(Forked("ranks_help:join_and_call", words, env=variables, stderr=said))
    try:
        for process in ranks:
            process.wait(timeout=480)
    finally:
        for process in ranks:
            process.kill()
            process.wait()
    codes = [process.returncode for process in ranks]
    assert codes == [0] * number, [
        (folder / f"said-{place}").read_text() for place in range(number)
    ]
    return [pickle.loads((folder / f"result-{place}").read_bytes()) for place in range(number)]


def finish_in_ranks(settings, folder, tmp_path):
    """Run an experiment in two ranks, or go on with it."""
    in_ranks(
        "rank_jobs:finish_experiment",
        2,
        tmp_path,
        SETTINGS=json.dumps(settings),
        FOLDER=str(folder),
    )


def parameters(folder, method):
    """What devices came to."""
    return torch.from_numpy(load_parameters(folder / "seed-0" / method / "checkpoint.safetensors"))


def children(pid):
    """The processes that a process has started."""
    with suppress(OSError):
        return [
            int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        ]
    return []


def join_and_call(words):
    """In a rank: keep in a file what ``module:function`` returns."""
    function, result = words
    with joined():
        Path(result).write_bytes(pickle.dumps(import_object(function, "function")()))
