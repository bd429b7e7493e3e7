"""Devices with data of their own: what each folder gets, and what it says of it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ssdfl.errors import InputError
from ssdfl.files import atomic_path, write_text
from ssdfl.learning import has_device_files, load_data
from ssdfl.learning.readers import device_files, read_table
from ssdfl.records.config import Experiment
from ssdfl.records.sections import DataSection

TRAIN = "train.parquet"
ENCODING = "encoding.json"


def own_settings(experiment: Experiment) -> dict[str, Any]:
    """Sections of the experiment that differ on devices with data of their own."""
    config, evaluate = experiment.data, experiment.evaluate
    if has_device_files(config):
        changes = {"name": Path(config.name).name, "train": TRAIN, "encoding": ENCODING}
    elif config.train:
        changes = {"encoding": ENCODING if config.encoding else ""}
    else:
        return {}
    _check_whole(config)
    return {
        "data": config.model_copy(update=changes),
        "evaluate": evaluate.model_copy(update={"every": evaluate.every or 1}),
    }


def _check_whole(config: DataSection) -> None:
    if config.samples_per_device:
        expected = "0 where devices have data of their own"
        raise InputError(
            "data.samples_per_device", config.samples_per_device, expected, "Shorten the files."
        )


def hand_out_data(config: DataSection, folders: Sequence[Path]) -> None:
    """Put each device's own table into its folder, and how all are encoded.

    Raises:
        InputError: a device without a file, or files that do not fit together.
    """
    if has_device_files(config):
        _hand_out_files(config, folders)
    elif config.encoding:
        _write_to_all(folders, Path(config.encoding).read_text(encoding="utf-8"))


def hand_out_files(place: Path, folders: Sequence[Path]) -> None:
    """Put each device's own table into its folder.

    Args:
        place: the folder with a table for each device, named after it.

    Raises:
        InputError: a device without a file.
    """
    paths = {path.stem: path for path in device_files(place)}
    for folder in folders:
        _copy_table(_file_of(folder.name, paths, str(place)), folder / TRAIN)


def _hand_out_files(config: DataSection, folders: Sequence[Path]) -> None:
    hand_out_files(Path(config.name), folders)
    summary = load_data(config).summary
    assert summary is not None, "tables have one"
    _write_to_all(folders, summary.to_json())


def _write_to_all(folders: Sequence[Path], text: str) -> None:
    for folder in folders:
        write_text(folder / ENCODING, text)


def _file_of(device: str, paths: dict[str, Path], place: str) -> Path:
    if device not in paths:
        expected = f"a file of that name in {place}"
        raise InputError(
            "device without data", device, expected, f"Call it {device}.parquet or .csv."
        )
    return paths[device]


def _copy_table(source: Path, target: Path) -> None:
    """The same table as Parquet, so that all devices' experiments are the same text."""
    with atomic_path(target) as temporary:
        if source.suffix == target.suffix:
            shutil.copyfile(source, temporary)
        else:
            import pyarrow.parquet as parquet

            parquet.write_table(read_table(source), temporary)
