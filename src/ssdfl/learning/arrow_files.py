"""Read tables in Arrow and Parquet files; refuse those that expand to many times their size."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from ssdfl.claims import check_expansion
from ssdfl.lazy import LazyModule

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as parquet
else:
    pa, parquet = LazyModule("pyarrow"), LazyModule("pyarrow.parquet")

_ROWS_AT_ONCE = 4096


def read_parquet(path: Path) -> pa.Table:
    """The table in a Parquet file.

    Repeated values take almost no space in a file, so rows are read a few at a time.

    Raises:
        InputError: it expands to many times its size.
        OSError, pa.ArrowException: the file is damaged.
    """
    with parquet.ParquetFile(path) as file:
        groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
        check_expansion(path, sum(group.total_byte_size for group in groups))
        return joined_batches(path, file.iter_batches(_ROWS_AT_ONCE), file.schema_arrow)


def joined_batches(path: Path, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """Join the batches of a file into one table.

    Raises:
        InputError: they are many times the file's size.
    """
    kept, size_bytes = [], 0
    for batch in batches:
        size_bytes += batch.nbytes
        check_expansion(path, size_bytes)
        kept.append(batch)
    return pa.Table.from_batches(kept, schema)
