"""Where the engine's choices come from: stacked against looped gradients, sparse against dense mixing.

Prints milliseconds and ratios of one run; ratios are what to compare, since machines are noisy.
Run it with ``make bench`` or ``python benchmarks/engine.py --quick``.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
import torch

from ssdfl.engine import Job, initial_state
from ssdfl.engine.gradients import GRADIENTS
from ssdfl.engine.local import DENSE_SHARE, mix
from ssdfl.graph import load_network, metropolis
from ssdfl.learning import Dataset, build_model, draw_optimizers, iid, make_task
from ssdfl.rng import generator
from ssdfl.schedule import METHODS, Setting


def milliseconds(work: Callable[[], object], repeats: int) -> float:
    """The least time of several repeats, after one to warm up."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


def noise(shape: tuple[int, ...], samples: int) -> Dataset:
    """Random images: speed does not depend on what they show."""
    rng = generator(0, "benchmark")
    images = rng.standard_normal((samples, *shape), dtype=np.float32)
    labels = rng.integers(10, size=samples)
    return Dataset(images, labels, images[:100], labels[:100], 10)


def gradients(model: str, shape: tuple[int, ...], num_devices: int, repeats: int) -> None:
    """One local step of all devices, batch 16, both ways."""
    data = noise(shape, 16 * num_devices)
    network = load_network(f"ring:n={num_devices}")
    rng = generator(0, "benchmark")
    job = Job(
        task=make_task(build_model(model, shape, 10, 0), data, iid(data.train_labels, num_devices, rng)),
        network=network,
        schedule=METHODS["sdfl"](Setting(network, ())),
        optimizers=draw_optimizers("sgd", num_devices, rng),
        cycles=1,
        steps_per_cycle=4,
        learning_rate=0.1,
    )
    everyone, X = torch.arange(num_devices), initial_state(job).X
    positions = job.batches(range(num_devices), 0)[:, 0]
    took = {
        name: milliseconds(lambda make=make: make(job)(X, everyone, positions, (0, 0)), repeats)  # type: ignore[misc]
        for name, make in GRADIENTS.items()
    }
    print(
        f"{model:>7} N={num_devices:<5} d={X.shape[1]:<7} looped {took['looped']:9.1f} ms  "
        f"stacked {took['stacked']:9.1f} ms  looped/stacked {took['looped'] / took['stacked']:6.2f}"
    )


def mixing(spec: str, d: int, repeats: int) -> None:
    """One product W X as the engine does it, against a dense one."""
    W = metropolis(load_network(spec).adjacency)
    X = torch.randn(W.shape[0], d, generator=torch.Generator().manual_seed(0))
    dense_W = torch.from_numpy(W.toarray()).float()
    engine_ms, dense_ms = milliseconds(lambda: mix(W, X), repeats), milliseconds(lambda: dense_W @ X, repeats)
    share = W.nnz / W.shape[0] ** 2
    kind = "dense" if share > DENSE_SHARE else "sparse"
    print(
        f"{spec:>22} d={d:<7} filled {share:6.1%}  engine ({kind}) {engine_ms:8.2f} ms  "
        f"dense {dense_ms:8.2f} ms  dense/engine {dense_ms / engine_ms:6.2f}"
    )


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes only, a few seconds")
    quick = parser.parse_args().quick
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads")
    for num_devices in (20, 100) if quick else (20, 100, 1000):
        for model in ("logreg", "mlp"):
            gradients(model, (1, 8, 8), num_devices, 3)
    gradients("cnn", (1, 28, 28), 5 if quick else 20, 2)
    for spec, d in (("complete:n=20", 5_000), ("er:n=50,p=0.1", 558_474), ("er:n=200,p=0.03", 5_000)):
        mixing(spec, d, 3)
    if not quick:
        mixing("er:n=2000,p=0.004", 5_000, 3)


if __name__ == "__main__":
    main()
