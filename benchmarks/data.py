"""Seconds to read 100 device files of 1 MB.

    python benchmarks/data.py

Aim: under 2 s.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

from ssdfl.learning import load_dataset

FILES, ROWS, COLUMNS = 100, 12_500, 10
TIMES = 5


def main() -> None:
    """Write the files, read them several times, and print the least time."""
    rng = np.random.default_rng(0)
    table = pa.table({f"c{k}": rng.random(ROWS) for k in range(COLUMNS)})
    with tempfile.TemporaryDirectory() as folder:
        for k in range(FILES):
            parquet.write_table(table, Path(folder) / f"{k}.parquet", compression="none")
        took = []
        for _ in range(TIMES):
            begun = time.perf_counter()
            load_dataset(f"{folder}/")
            took.append(time.perf_counter() - begun)
    print(f"{FILES} files of {table.nbytes / 1e6:.1f} MB: {min(took):.2f} s, the least of {TIMES}")


if __name__ == "__main__":
    main()
