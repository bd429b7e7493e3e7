"""Run a function in several ranks, as torchrun would, and collect what rank 0 returns."""

import json
import os
import pickle
import socket
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path

from safetensors.torch import load_file

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


def free_port():
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def environment(**more):
    paths = [str(TESTS.parent / "src"), str(TESTS), os.environ.get("PYTHONPATH", "")]
    fixed = {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    return {**os.environ, **fixed, **more}


def in_ranks(function, number, folder, **more):
    """What ``module:function`` returns in each of so many ranks."""
    port = str(free_port())
    ranks = []
    for number_of_rank in range(number):
        place = {"RANK": str(number_of_rank), "LOCAL_RANK": str(number_of_rank), "WORLD_SIZE": str(number)}
        variables = environment(**place, MASTER_ADDR="127.0.0.1", MASTER_PORT=port, **more)
        result = Path(folder) / f"result-{number_of_rank}"
        ranks.append(
            subprocess.Popen(
                [sys.executable, __file__, function, result], env=variables, stderr=subprocess.PIPE, text=True
            )
        )
    try:
        said = [process.communicate(timeout=240)[1] for process in ranks]
    finally:
        for process in ranks:
            process.kill()
            process.wait()
    assert [process.returncode for process in ranks] == [0] * number, said
    return [pickle.loads((Path(folder) / f"result-{k}").read_bytes()) for k in range(number)]


def finish_in_ranks(settings, folder, tmp_path):
    """Run an experiment in two ranks, or go on with it."""
    in_ranks("rank_jobs:finish_experiment", 2, tmp_path, SETTINGS=json.dumps(settings), FOLDER=str(folder))


def parameters(folder, method):
    """What devices came to."""
    return load_file(folder / "seed-0" / method / "checkpoint.safetensors")["X"]


def children(pid):
    """The processes that a process has started."""
    with suppress(OSError):
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


if __name__ == "__main__":
    with joined():
        Path(sys.argv[2]).write_bytes(pickle.dumps(import_object(sys.argv[1], "function")()))
