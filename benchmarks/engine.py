"""How close the `local` engine comes to the hardware's limit, and how far it beats a plain loop.

    python benchmarks/engine.py --quick        # the main figures, within a minute
    python benchmarks/engine.py --json         # everything, as JSON

Speed does not depend on what images show, so images are noise. Configurations take turns in one
run, and the least time of each counts. Look at ratios, since machines are noisy.
"""

import argparse
import copy
import json
import math
import multiprocessing
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from roofline import bytes_once, products_alone
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from ssdfl.clusters import plan_clusters
from ssdfl.engine import Job, initial_state, run
from ssdfl.engine.honest import Honest
from ssdfl.engine.local import LocalEngine
from ssdfl.engine.loop import tested
from ssdfl.engine.threads import one_thread_each
from ssdfl.graph import load_network
from ssdfl.learning import (
    Dataset,
    Precision,
    build_model,
    draw_optimizers,
    has_bf16_units,
    iid,
    make_task,
)
from ssdfl.learning.precision import computing_in
from ssdfl.methods import METHODS, ScheduleInputs
from ssdfl.preparation import testing_interval
from ssdfl.records import Experiment
from ssdfl.rng import generator

DIGITS, FASHION = (1, 8, 8), (1, 28, 28)
NEVER = 10**9
TAU_A, TAU_R = 5, 1


@dataclass(frozen=True)
class Figure:
    """One measured figure and what it should be.

    Attributes:
        aim: the number of the aim in docs/performance.md.
        value: NaN where it cannot be measured here.
        least, most: the range that meets the aim; both infinite if the figure is informative.
        skipped: why it was not measured.
    """

    aim: int
    what: str
    value: float
    unit: str
    least: float = -math.inf
    most: float = math.inf
    skipped: str = ""

    @property
    def shown(self) -> str:
        """The value with its unit."""
        return "–" if self.skipped else f"{self.value:.3g} {self.unit}"

    @property
    def verdict(self) -> str:
        """Whether the aim is met."""
        if self.skipped:
            return f"skipped: {self.skipped}"
        if math.isinf(self.least) and math.isinf(self.most):
            return ""
        wanted = f"≤ {self.most:g}" if math.isinf(self.least) else f"≥ {self.least:g}"
        return f"{wanted}: {'met' if self.least <= self.value <= self.most else 'missed'}"


def noise(shape: tuple[int, ...], samples: int, tests: int) -> Dataset:
    """Random images."""
    rng = generator(0, "benchmark")
    images = rng.standard_normal((samples + tests, *shape), dtype=np.float32)
    labels = rng.integers(10, size=samples + tests)
    return Dataset(images[:samples], labels[:samples], images[samples:], labels[samples:], 10)


def make_job(
    model: str,
    shape: tuple[int, ...],
    num_devices: int,
    batch_size: int = 16,
    local_steps: int = 1,
    method: str = "ssdfl",
    optimizers: str = "mixed",
    tests: int = 1000,
    links: float = 4.0,
    options: dict[str, object] | None = None,
) -> Job:
    """A job on a random network with ``links`` links a device, tested only on request."""
    network = load_network(f"er:n={num_devices},p={min(1.0, links / num_devices)},seed=1")
    rng = generator(0, "benchmark")
    data = noise(shape, 16 * num_devices, tests)
    task = make_task(
        build_model(model, shape, 10, 0, options), data, iid(data.train_targets, num_devices, rng)
    )
    clusters = plan_clusters(network, min(4, num_devices)).clusters if method == "ssdfl" else ()
    return Job(
        task=task,
        network=network,
        schedule=METHODS[method].schedule(
            ScheduleInputs(network, clusters, tau_a=TAU_A, tau_r=TAU_R)
        ),
        optimizers=draw_optimizers(optimizers, num_devices, rng),
        cycles=NEVER,
        steps_per_cycle=TAU_A + TAU_R,
        learning_rate=0.01,
        batch_size=batch_size,
        local_steps=local_steps,
        evaluate_every=NEVER,
    )


Clock = Callable[[], float]
"""Seconds: `time.perf_counter`, or on a busy machine `time.process_time` of all threads."""


def in_turns(
    cases: dict[str, Callable[[], object]], repeats: int, clock: Clock = time.perf_counter
) -> dict[str, float]:
    """The least seconds of each case, taking turns, after one turn to warm up."""
    least = dict.fromkeys(cases, math.inf)
    for turn in range(repeats + 1):
        for name, work in cases.items():
            start = clock()
            work()
            if turn:
                least[name] = min(least[name], clock() - start)
    return least


def bare_batches(
    model: nn.Module, batches: list[tuple[Tensor, Tensor]], precision: Precision = "float32"
) -> None:
    """Forward and backward, and nothing else."""
    for inputs, labels in batches:
        model.zero_grad(set_to_none=True)
        with computing_in(precision, inputs.device):
            scores = model(inputs)
        cross_entropy(scores.float(), labels).backward()


def channels_last_batches(job: Job) -> list[tuple[Tensor, Tensor]]:
    """The mini-batches of a cycle, as convolutions want them."""
    batches = []
    for t in range(TAU_A):
        for samples in job.samples(range(job.network.num_devices), t)[:, 0]:
            inputs, labels = job.task.batch(samples)
            assert isinstance(inputs, Tensor)
            batches.append((inputs.contiguous(memory_format=torch.channels_last), labels))
    return batches


def near_the_limit(num_devices: int, repeats: int) -> Iterator[Figure]:
    """Aims 1 and 3: a cycle of the paper's CNN against bare batches, and mixing's share."""
    job = make_job("cnn", FASHION, num_devices, batch_size=32)
    batches = channels_last_batches(job)
    models = [copy.deepcopy(job.task.model).to(memory_format=torch.channels_last) for _ in range(2)]  # type: ignore[call-overload]
    cycles = run(job, in_place=True)

    def side_by_side() -> None:
        with one_thread_each(), ThreadPoolExecutor(2) as pool:
            list(pool.map(bare_batches, models, (batches[::2], batches[1::2])))

    took = in_turns(
        {
            "full": lambda: next(cycles),
            "two threads": lambda: bare_batches(models[0], batches),
            "side by side": side_by_side,
        },
        repeats,
    )
    full = took.pop("full")
    what = f"cnn, N = {num_devices}: full run / bare forward and backward"
    for way, seconds in took.items():
        yield Figure(1, f"{what}, {way}", full / seconds, "×", most=1.10)
    yield from mixing_share(job, full / TAU_A)


def mixed_precision(num_devices: int, repeats: int) -> Iterator[Figure]:
    """Aim 6: a cycle of the paper's CNN in bf16 against float32 and bare bf16 batches."""
    job = make_job("cnn", FASHION, num_devices, batch_size=32)
    against_float32 = f"cnn, N = {num_devices}: full run in bf16 / in float32"
    side_by_side = "bare forward and backward in bf16, side by side"
    against_bare = f"cnn, N = {num_devices}: full run in bf16 / {side_by_side}"
    if not has_bf16_units(job.task.device):
        for what, most in ((against_float32, 0.6), (against_bare, 1.15)):
            yield Figure(6, what, math.nan, "×", most=most, skipped="no units for bf16 here")
        return
    batches = channels_last_batches(job)
    models = [copy.deepcopy(job.task.model).to(memory_format=torch.channels_last) for _ in range(2)]  # type: ignore[call-overload]
    plain = run(job, in_place=True)
    mixed = run(replace(job, task=job.task.in_precision("bf16")), in_place=True)

    def bare() -> None:
        with one_thread_each(), ThreadPoolExecutor(2) as pool:
            list(pool.map(bare_batches, models, (batches[::2], batches[1::2]), ("bf16", "bf16")))

    cases: dict[str, Callable[[], object]] = {
        "float32": lambda: next(plain),
        "bf16": lambda: next(mixed),
        "bare": bare,
    }
    took = in_turns(cases, repeats)
    yield Figure(6, against_float32, took["bf16"] / took["float32"], "×", most=0.6)
    yield Figure(6, against_bare, took["bf16"] / took["bare"], "×", most=1.15)


def mixing_share(job: Job, step_s: float) -> Iterator[Figure]:
    """Aim 3: what mixing inside clusters and over all links takes of a training step."""
    engine = LocalEngine(job)
    X = initial_state(job).X.clone()
    out = torch.empty_like(X)
    with one_thread_each():
        for t, name in ((0, "inside clusters"), (TAU_A, "over all links")):
            mixing = engine.exchange.mixing(job.step(t).W)
            seconds = in_turns({"mix": partial(mixing.into, out, X, engine.threads)}, 3)["mix"]
            what = f"cnn, N = {len(X)}: mixing {name} / training step"
            yield Figure(3, what, 100 * seconds / step_s, "%", most=5)
    engine.close()


def plain_step(
    job: Job, models: list[nn.Module], optimizers: list[torch.optim.SGD], t: int
) -> None:
    """What everyone writes first: one device after the other, then a product with W."""
    for model, optimizer, batches in zip(
        models, optimizers, job.samples(range(len(models)), t), strict=True
    ):
        for samples in batches:
            inputs, labels = job.task.batch(samples)
            optimizer.zero_grad()
            cross_entropy(model(inputs), labels).backward()
            optimizer.step()
    with torch.no_grad():
        X = torch.stack([parameters_to_vector(model.parameters()) for model in models]).numpy()
        for model, row in zip(models, job.schedule(t).W.astype(np.float32) @ X, strict=True):
            vector_to_parameters(torch.from_numpy(row), model.parameters())


def against_a_plain_loop(model: str, shape: tuple[int, ...], repeats: int) -> Iterator[Figure]:
    """Aim 2: steps of 1,000 devices with momentum against a plain loop."""
    job = make_job(model, shape, 1000, optimizers="momentum")
    models = [copy.deepcopy(job.task.model) for _ in range(1000)]
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.01, momentum=0.8) for m in models]
    cycles = run(job, in_place=True)

    def two_cycles() -> None:
        list(islice(cycles, 2))

    def plain() -> None:
        with one_thread_each():
            plain_step(job, models, optimizers, 0)

    two_cycles()
    took = in_turns({"ours": two_cycles, "plain": plain}, repeats)
    ratio = took["plain"] / (took["ours"] / 2 / TAU_A)
    yield Figure(
        2, f"{described(model, shape)}, N = 1,000: plain loop / full run", ratio, "×", least=20
    )


def described(model: str, shape: tuple[int, ...]) -> str:
    """A model and its images."""
    return f"{model} {'×'.join(map(str, shape[1:]))}"


def device_step(model: str, shape: tuple[int, ...], num_devices: int) -> float:
    """Microseconds of one device's step in a full run, mixing and all."""
    cycles = run(make_job(model, shape, num_devices, method="sdfl"), in_place=True)
    many = max(1, 4000 // num_devices)
    list(islice(cycles, 4))
    seconds = in_turns({"cycles": lambda: list(islice(cycles, many))}, 3)["cycles"]
    return 1e6 * seconds / (many * TAU_A * num_devices)


def growth(model: str, shape: tuple[int, ...], sizes: tuple[int, ...]) -> Iterator[Figure]:
    """Aim 2: the cost of a device's step as there are more devices."""
    first = 0.0
    for num_devices in sizes:
        took = device_step(model, shape, num_devices)
        what = f"{described(model, shape)}, N = {num_devices:,}: a device's step"
        yield Figure(2, what, took, "µs")
        if first:
            yield Figure(2, f"{what} / at N = {sizes[0]:,}", took / first, "×", most=1.1)
        first = first or took


def near_the_roofline(
    model: str,
    shape: tuple[int, ...],
    num_devices: int,
    repeats: int,
    clock: Clock = time.perf_counter,
) -> Iterator[Figure]:
    """Aim 7: a cycle against its products alone and against its bytes moved once, in turns."""
    job = make_job(model, shape, num_devices, method="sdfl", optimizers="sgd")
    cycles = run(job, in_place=True)
    list(islice(cycles, 3))
    took = in_turns(
        {
            "run": lambda: next(cycles),
            "products": products_alone(job, TAU_A),
            "bytes": bytes_once(job, TAU_A, TAU_A + TAU_R),
        },
        repeats,
        clock,
    )
    limit = max(("products", "bytes"), key=lambda name: took[name])
    what = f"{described(model, shape)}, N = {num_devices:,}: run / "
    for name in ("products", "bytes"):
        most = 1.5 if name == limit else math.inf
        yield Figure(7, f"{what}{name} alone", took["run"] / took[name], "×", most=most)


def large_run() -> tuple[float, float, float]:
    """20 cycles of 10,000 devices with the digits' net: seconds to prepare and run, peak GB."""
    start = time.perf_counter()
    job = replace(
        make_job("mlp", DIGITS, 10_000, local_steps=2, tests=360), cycles=20, evaluate_every=1
    )
    prepared = time.perf_counter()
    for _ in run(job, in_place=True):
        pass
    return prepared - start, time.perf_counter() - prepared, peak_memory() / 1e9


def state_memory(num_devices: int) -> float:
    """Peak bytes of a run beyond data: the state, and two threads' convolutions at a time."""
    job = make_job("cnn", FASHION, num_devices, batch_size=32)
    with one_thread_each(), ThreadPoolExecutor(2) as pool:
        batches = [job.task.batch(job.task.shards[device]) for device in range(8)]
        list(
            pool.map(
                bare_batches, (job.task.model, job.task.twin().model), (batches[::2], batches[1::2])
            )
        )
    before = peak_memory(reset=True)
    list(islice(run(job, in_place=True), 2))
    return float(peak_memory() - before)


def peak_memory(reset: bool = False) -> int:
    """The most bytes of memory that this process has held, since the last reset (Linux only)."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def elsewhere(work: Callable[..., Any], *arguments: object) -> Any:
    """The result of work in a process of its own, whose memory is its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work, arguments)


def testing_share(
    model: str, shape: tuple[int, ...], tests: int, num_devices: int
) -> Iterator[Figure]:
    """Aim 4: what testing takes of a run with the default experiment's steps and cadence."""
    training = Experiment().training
    job = make_job(
        model,
        shape,
        num_devices,
        training.batch_size,
        training.local_steps,
        method="sdfl",
        tests=tests,
    )
    every = testing_interval(Experiment(), job.task)
    job = replace(job, evaluate_every=every)
    engine = LocalEngine(job)
    cycles = run(replace(job, evaluate_every=NEVER), in_place=True)
    *_, (_, state) = islice(cycles, 4)

    def test() -> None:
        with one_thread_each():
            tested(
                engine,
                job.task.goal_score,
                Honest(engine.shares, ()),
                state.X,
                state.X.mean(dim=0, keepdim=True),
                {},
            )

    took = in_turns({"test": test, "cycle": lambda: next(cycles)}, 20 if model != "cnn" else 3)
    engine.close()
    share = took["test"] / (took["test"] + every * took["cycle"])
    what = f"{described(model, shape)}, N = {num_devices}, {tests} test samples"
    yield Figure(4, f"{what}: testing every {every} cycles / run", 100 * share, "%", most=25)


def start_up() -> Iterator[Figure]:
    """Aim 5: seconds until Python code and the command are ready."""
    for what, command, most in (
        ("import ssdfl", [sys.executable, "-c", "import ssdfl"], 0.3),
        ("ssdfl --help", [sys.executable, "-m", "ssdfl", "--help"], 0.5),
    ):
        took = in_turns(
            {what: partial(subprocess.run, command, check=True, capture_output=True)}, 3
        )
        yield Figure(5, what, took[what], "s", most=most)


def measure(quick: bool) -> Iterator[Figure]:
    """All figures, one after the other."""
    yield from start_up()
    yield from near_the_limit(10, 3 if quick else 6)
    yield from mixed_precision(10, 3 if quick else 6)
    yield from against_a_plain_loop("mlp", DIGITS, 3)
    yield from against_a_plain_loop("logreg", DIGITS, 3)
    yield from testing_share("mlp", DIGITS, 360, 20)
    yield from growth("mlp", DIGITS, (100, 1000))
    if quick:
        return
    yield from near_the_limit(50, 2)
    ten, fifty = elsewhere(state_memory, 10), elsewhere(state_memory, 50)
    yield Figure(1, "cnn, N = 10: peak memory beyond data", ten / 1e6, "MB")
    yield Figure(1, "cnn, N = 50: peak memory beyond data", fifty / 1e6, "MB")
    more = (fifty - ten) / (40 * 4 * make_job("cnn", FASHION, 2).task.num_parameters)
    yield Figure(1, "cnn: more memory for each more device, in d numbers", more, "×", most=3)
    yield from against_a_plain_loop("mlp", FASHION, 2)
    yield from against_a_plain_loop("logreg", FASHION, 2)
    for model in ("logreg", "mlp"):
        yield from growth(model, DIGITS, (100, 1000, 10_000))
    prepare_s, run_s, peak = elsewhere(large_run)
    yield Figure(2, "mlp 8×8, N = 10,000: making network, plan and data", prepare_s, "s")
    yield Figure(2, "mlp 8×8, N = 10,000: 20 cycles, tested every cycle", run_s, "s", most=120)
    yield Figure(2, "mlp 8×8, N = 10,000: peak memory", peak, "GB", most=4)
    yield from rooflines((100, 1000, 10_000))
    for case in (
        ("mlp", FASHION, 1000, 20),
        ("cnn", FASHION, 1000, 10),
        ("logreg", DIGITS, 360, 1000),
    ):
        yield from testing_share(*case)


def rooflines(sizes: tuple[int, ...], clock: Clock = time.perf_counter) -> Iterator[Figure]:
    """Aim 7 for both small models and sizes of images."""
    for model in ("mlp", "logreg"):
        for shape in (DIGITS, FASHION):
            for num_devices in sizes:
                repeats = 10 if num_devices < 1000 else 3
                yield from near_the_roofline(model, shape, num_devices, repeats, clock)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description="The local engine against the hardware and a plain loop."
    )
    parser.add_argument("--quick", action="store_true", help="the main figures, within a minute")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument(
        "--roofline", type=int, nargs="+", metavar="N", help="aim 7 only, for N devices"
    )
    parser.add_argument(
        "--cpu", action="store_true", help="aim 7 in CPU seconds, on a busy machine"
    )
    arguments = parser.parse_args()
    clock = time.process_time if arguments.cpu else time.perf_counter
    sizes = tuple(arguments.roofline or ())
    measured = rooflines(sizes, clock) if sizes else measure(arguments.quick)
    if arguments.json:
        figures = [asdict(figure) | {"verdict": figure.verdict} for figure in measured]
        print(json.dumps({"torch": torch.__version__, "figures": figures}, indent=1, default=str))
        return
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads\n")
    print("| aim | figure | measured | wanted |")
    print("|---|---|---|---|")
    for figure in measured:
        print(f"| {figure.aim} | {figure.what} | {figure.shown} | {figure.verdict} |", flush=True)


if __name__ == "__main__":
    main()
