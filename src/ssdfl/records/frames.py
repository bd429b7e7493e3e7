"""The records of a run or of a sweep as one data frame."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ssdfl.errors import require
from ssdfl.records.folder import RunFolder
from ssdfl.records.tables import SWEEP_RECORDS, read_frame

if TYPE_CHECKING:
    import pandas


def load_records(folder: Path | str) -> pandas.DataFrame:
    """All records of a run or a sweep: one row per method, seed and cycle.

    In a sweep's folder, the first columns are the swept keys, such as ``schedule.tau_a``.

    Args:
        folder: the folder with the results of ``ssdfl run`` or ``ssdfl sweep``.

    Raises:
        InputError: the folder holds neither, or pandas is not installed.
    """
    require("pandas", "pandas")
    swept = Path(folder) / SWEEP_RECORDS
    return read_frame(swept) if swept.exists() else RunFolder(folder).to_pandas()
