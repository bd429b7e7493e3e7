"""The same decentralized training by ssdfl and by other tools, one after the other.

    python benchmarks/peers/install.py         # once: an environment per tool
    python benchmarks/peers/compare.py         # all problems
    python benchmarks/peers/compare.py --quick --only ours,plain

Tools that are not installed are skipped with a line. Times are of this machine, the least and the
greatest of several runs; rates and ratios are of the least. Compare the ratios, and only if nothing
else is running.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from install import HERE, NAMES, python_of
from problem import STARTED, Problem, Settings, save_problem
from torch import Tensor, nn

from ssdfl.errors import InputError
from ssdfl.graph import load_network, metropolis
from ssdfl.learning import DATASETS, Dataset, build_model, iid, load_dataset, locate
from ssdfl.rng import generator

ACCURACY_TOLERANCE = 0.05
BUSY = 2.0
COLUMNS = (
    "tool",
    "version",
    "start-up s",
    "steady s",
    "device-steps/s",
    "times slower",
    "accuracy",
    "note",
)


@dataclass(frozen=True)
class Case:
    """A problem to make.

    Attributes:
        quick_rounds: rounds with ``--quick``.
        shard_size: samples of a device; 0 deals out all.
        test_samples: samples to test on at the end; 0 is all.
        kaiming: draw first weights by Kaiming's rule. With PyTorch's, the CNN stays at chance for
            all its rounds, and accuracies could not show whether two tools did the same.
    """

    title: str
    data: str
    model: str
    num_devices: int
    learning_rate: float
    batch_size: int
    local_steps: int
    rounds: int
    quick_rounds: int
    shard_size: int = 0
    test_samples: int = 0
    kaiming: bool = False


@dataclass(frozen=True)
class Peer:
    """A tool.

    Attributes:
        script: what to run.
        most_devices: how many devices it can be asked to simulate on one machine; 0 is any number.
        why: what limits that.
    """

    script: str
    most_devices: int = 0
    why: str = ""


CASES = (
    Case("digits, MLP, ring of 8", "digits", "mlp", 8, 0.1, 16, 2, 100, 20),
    Case("digits, MLP, ring of 100", "digits", "mlp", 100, 0.1, 16, 2, 100, 20),
    Case(
        "Fashion-MNIST, CNN, ring of 8",
        "fmnist",
        "cnn",
        8,
        0.02,
        32,
        1,
        20,
        20,
        1000,
        1000,
        kaiming=True,
    ),
)
PEERS = {
    "ours": Peer("ours.py"),
    "plain": Peer("plain.py"),
    "flower": Peer("flower.py"),
    "gossipy": Peer("gossipy_dfl.py"),
    "decent": Peer("decent.py", 16, "one process per device"),
    "p2pfl": Peer(
        "p2pfl_.py", 10, "messages live for ten hops, and every device has several threads"
    ),
}


def make_problem(case: Case, data: Dataset, rounds: int) -> Problem:
    """Deal out the data, and take ssdfl's Metropolis weights and first parameters."""
    network = f"ring:n={case.num_devices}"
    shards = iid(data.train_targets, case.num_devices, generator(0, "peers"))
    shards = shards[:, : case.shard_size or shards.shape[1]]
    tested = slice(case.test_samples or None)
    settings = Settings(
        name=case.title,
        network=network,
        model=case.model,
        image_shape=data.input_shape,
        num_classes=data.num_classes,
        learning_rate=case.learning_rate,
        batch_size=case.batch_size,
        local_steps=case.local_steps,
        rounds=rounds,
        seed=0,
    )
    return Problem(
        settings=settings,
        inputs=torch.from_numpy(np.asarray(data.train_inputs)[shards]),
        labels=torch.from_numpy(data.train_targets[shards]),
        test_inputs=torch.from_numpy(np.asarray(data.test_inputs)[tested]),
        test_labels=torch.from_numpy(data.test_targets[tested]),
        W=metropolis(load_network(network).adjacency).toarray(),
        initial=first_parameters(case, data),
    )


def first_parameters(case: Case, data: Dataset) -> Tensor:
    """(d,) the same for every device and tool."""
    model = build_model(case.model, data.input_shape, data.num_classes, seed=0)
    draws = torch.Generator().manual_seed(0)
    for weights in model.parameters() if case.kaiming else ():
        if weights.dim() > 1:
            nn.init.kaiming_uniform_(weights, nonlinearity="relu", generator=draws)
    return nn.utils.parameters_to_vector(model.parameters()).detach()


def data_of(case: Case) -> Dataset | None:
    """The case's data if it is on this machine."""
    source = DATASETS[case.data].source
    return None if source is not None and locate(source) is None else load_dataset(case.data)


def obstacle(name: str, num_devices: int) -> str:
    """Why a tool cannot be asked, or nothing."""
    peer = PEERS[name]
    if peer.most_devices and num_devices > peer.most_devices:
        return f"{num_devices} devices are too many: {peer.why}"
    if name in NAMES and not python_of(name).exists():
        return f"not installed; run python benchmarks/peers/install.py {name}"
    return ""


def ask(name: str, folder: Path, timeout_s: float) -> dict[str, Any] | str:
    """What a tool reports of a problem, or why it reports nothing."""
    python = str(python_of(name)) if name in NAMES else sys.executable
    with tempfile.TemporaryDirectory() as scratch:
        process = subprocess.Popen(
            [python, str(HERE.resolve() / PEERS[name].script), str(folder)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=scratch,
            env={**os.environ, STARTED: str(time.time())},
            start_new_session=True,
        )
        try:
            out, errors = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return f"stopped after {timeout_s:g} s"
    reports = [line for line in out.splitlines() if line.startswith('{"name"')]
    if reports:
        result: dict[str, Any] = json.loads(reports[-1])
        return result
    last = [line for line in (errors or out).splitlines() if line.strip()][-1:]
    return f"failed with {process.returncode}: {''.join(last)}"


def measure(case: Case, data: Dataset, options: argparse.Namespace) -> dict[str, Any]:
    """All tools on one case: rows of results, and why others have none.

    Tools take turns, so that what else the machine does falls on none in particular.
    """
    rounds = case.quick_rounds if options.quick else case.rounds
    skipped = {name: why for name in options.only if (why := obstacle(name, case.num_devices))}
    answers: dict[str, list[dict[str, Any]]] = {
        name: [] for name in options.only if name not in skipped
    }
    with tempfile.TemporaryDirectory() as scratch:
        save_problem(make_problem(case, data, rounds), Path(scratch))
        for _ in range(options.repeats):
            for name in answers:
                answer = ask(name, Path(scratch), options.timeout) if name not in skipped else ""
                if isinstance(answer, str):
                    skipped.setdefault(name, answer)
                else:
                    answers[name].append(answer)
    for name, why in skipped.items():
        print(f"{name}: skipped, {why}", file=sys.stderr, flush=True)
    rows = [fastest(name, found, case) for name, found in answers.items() if found]
    return {"problem": case.title, "rounds": rounds, "rows": compared(rows), "skipped": skipped}


def fastest(name: str, answers: Sequence[dict[str, Any]], case: Case) -> dict[str, Any]:
    """The answer of least steady time, with the greatest beside it."""
    best = min(answers, key=lambda answer: float(answer["steady_s"]))
    slowest_s = max(float(answer["steady_s"]) for answer in answers)
    rounds = best["device_steps"] // (case.num_devices * case.local_steps)
    return {"tool": name, **best, "slowest_s": slowest_s, "rounds": rounds}


def compared(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add rates, ratios to ssdfl, and whether accuracy after the same rounds is off."""
    for row in rows:
        row["device_steps_per_s"] = row["device_steps"] / row["steady_s"]
    ours = next((row for row in rows if row["tool"] == "ours"), None)
    for row in rows if ours else ():
        assert ours is not None
        row["times_slower"] = ours["device_steps_per_s"] / row["device_steps_per_s"]
        off = abs(row["accuracy"] - ours["accuracy"]) > ACCURACY_TOLERANCE
        row["accuracy_off"] = off and row["rounds"] == ours["rounds"]
    return rows


def print_case(result: dict[str, Any]) -> None:
    """A table in Markdown, and a line for each tool that learnt something else or was disturbed."""
    print(f"\n{result['problem']}, {result['rounds']} rounds\n")
    print("| " + " | ".join(COLUMNS) + " |")
    print("|" + "---|" * len(COLUMNS))
    for row in result["rows"]:
        after = "" if row["rounds"] == result["rounds"] else f" ({row['rounds']} rounds)"
        cells = (
            row["name"],
            row["version"],
            f"{row['startup_s']:.1f}",
            f"{row['steady_s']:.2f} … {row['slowest_s']:.2f}",
            f"{row['device_steps_per_s']:,.1f}",
            f"{row['times_slower']:.1f}" if "times_slower" in row else "",
            f"{row['accuracy']:.3f}{after}",
            row["note"],
        )
        print("| " + " | ".join(cells) + " |")
    for row in result["rows"]:
        if row.get("accuracy_off"):
            print(
                f"\nWarning: accuracy of {row['name']} is more than {ACCURACY_TOLERANCE} "
                "from ssdfl's."
            )
        if row["slowest_s"] > BUSY * row["steady_s"]:
            print(
                f"\nWarning: times of {row['name']} differ more than {BUSY:g}-fold: "
                "was the machine busy?"
            )


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Options from the command line."""
    parser = argparse.ArgumentParser(description="The same training by ssdfl and by other tools.")
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--only", default=",".join(PEERS), help=f"of {','.join(PEERS)}")
    parser.add_argument(
        "--problem", type=int, choices=range(1, len(CASES) + 1), help="one problem, by number"
    )
    parser.add_argument(
        "--repeats", type=int, default=3, help="runs of each tool; the fastest counts"
    )
    parser.add_argument(
        "--timeout", type=float, default=900.0, help="seconds for one run of one tool"
    )
    options = parser.parse_args(arguments)
    options.only = options.only.split(",")
    if unknown := sorted(set(options.only) - set(PEERS)):
        parser.error(f"--only: unknown {', '.join(unknown)}; choose from {', '.join(PEERS)}")
    return options


def main() -> None:
    """Measure and print."""
    options = parse()
    results = []
    for number, case in enumerate(CASES, start=1):
        if options.problem not in (None, number):
            continue
        try:
            data = data_of(case)
        except InputError as error:
            sys.exit(str(error))
        if data is None:
            print(
                f"{case.title}: skipped, no data; run ssdfl data fetch {case.data}", file=sys.stderr
            )
            continue
        results.append(measure(case, data, options))
        if not options.json:
            print_case(results[-1])
    if options.json:
        print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
