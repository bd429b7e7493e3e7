"""Files of devices with data of their own, for tests."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as parquet

from ssdfl.records import load_experiment

NAMES = ("Ann", "Bob", "São Paulo", "10.0.0.1")
ROWS = (40, 15, 90, 25)


def write_files(folder, ending="parquet"):
    """A table for each device: unequal rows, different means, categories and classes."""
    folder.mkdir()
    for k, (name, rows) in enumerate(zip(NAMES, ROWS, strict=True)):
        rng = np.random.default_rng(k)
        size = rng.normal(10 * k, 1 + k, rows)
        table = pa.table(
            {
                "size": size,
                "colour": rng.choice(["red", "green", "blue"][: 1 + k % 3], rows),
                "gap": [None if j % 7 == k else float(j) for j in range(rows)],
                "kind": np.where(size > 10 * k, f"k{k % 3}", "small"),
            }
        )
        path = folder / f"{name}.{ending}"
        parquet.write_table(table, path) if ending == "parquet" else csv.write_csv(table, path)
    return folder


def own_settings(folder, *changes):
    links = "source,target\n" + "".join(f"{a},{b}\n" for a, b in pairwise(NAMES))
    (folder / "network.csv").write_text(links + f"{NAMES[0]},{NAMES[-1]}\n", encoding="utf-8")
    return load_experiment(
        None,
        [
            f"network.spec={folder / 'network.csv'}",
            "clusters.number=2",
            "schedule.tau_a=2",
            "cycles=3",
            "training.batch_size=8",
            "model.name=mlp",
            *changes,
        ],
    )
