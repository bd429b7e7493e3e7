"""A run's folder: its experiment, its inputs and its results.

experiment.toml                     the experiment with every value written out
metrics.parquet                     all records of all methods and seeds
bounds.parquet                      measurements and the paper's bounds, if they were compared
versions.json                       the versions of the packages that it used
task.json                           the scores of its tests, and how its data were prepared
run.lock                            held while a run writes into the folder
seed-0/network.json, plan.json, devices.json
seed-0/ssdfl/metrics.parquet        one row per cycle
seed-0/ssdfl/checkpoint.safetensors the models of all devices after the last saved cycle
seed-0/ssdfl/part-*.safetensors     for a run in several ranks: the models of each rank's devices
seed-0/ssdfl/mesh/NAME/             for devices that ran as processes: the files of each
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast
from urllib.parse import quote

from ssdfl.clusters import Plan, read_plan, write_plan
from ssdfl.errors import InputError, import_object, require
from ssdfl.files import remove_temporaries, write_text
from ssdfl.graph import Network, read_network, to_json
from ssdfl.locks import locked
from ssdfl.records.bounds import BoundRow
from ssdfl.records.config import Experiment, load_experiment, write_experiment
from ssdfl.records.engines import engine_traits
from ssdfl.records.scores import (
    ACCURACY,
    CrossTests,
    Goal,
    Score,
    make_goal,
    scores_from_json,
    scores_to_json,
)
from ssdfl.records.tables import Row as Row
from ssdfl.records.tables import (
    bound_schema,
    read_records,
    read_table,
    record_schema,
    run_schema,
    to_frame,
    write_table,
)

if TYPE_CHECKING:
    import pandas

Result = TypeVar("Result")
_PLAIN_METHOD = re.compile(r"\w+|[\w.]+:\w+")
_PLAIN_FOLDER = re.compile(r"[\w.]+")
_LONGEST_NAME = 150
_HASH_DIGITS = 16
CHECKPOINT = "checkpoint.safetensors"
"""The file in a method's or device's folder with the state after the last saved cycle."""
CROSS_TESTS = "cross_tests.json"
LOCK = "run.lock"
"""The file in a run's folder that is held while a run writes into it."""
DEVICES_FOLDER = "mesh"
"""The folder in a method's folder for devices that run as processes."""


def folder_name(method: str) -> str:
    """A method's name as a folder name: unique, and allowed by common file systems.

    A name made of letters is kept, and ``module:function`` gets a dot. In all other names,
    characters that some file system refuses become ``%XX``. A long name ends with a hash.

    Examples:
        >>> folder_name("ssdfl"), folder_name("my_module:function"), folder_name("ssdfl+atc")
        ('ssdfl', 'my_module.function', 'ssdfl+atc')
        >>> folder_name("sdfl+choco:compressor=topk,fraction=0.01")
        'sdfl+choco%3Acompressor=topk,fraction=0.01'
    """
    if _PLAIN_METHOD.fullmatch(method):
        return method.replace(":", ".")
    quoted = quote(method, safe="+=,")
    if _PLAIN_FOLDER.fullmatch(quoted):
        quoted = quoted.replace(".", "%2E")
    if len(quoted) <= _LONGEST_NAME:
        return quoted
    digest = hashlib.sha256(method.encode()).hexdigest()[:_HASH_DIGITS]
    return f"{quoted[: _LONGEST_NAME - _HASH_DIGITS - 1]}~{digest}"


@dataclass(frozen=True, init=False)
class RunFolder:
    """Reads and writes the files in a run's folder."""

    path: Path

    def __init__(self, path: Path | str) -> None:
        object.__setattr__(self, "path", Path(path))

    @property
    def experiment_file(self) -> Path:
        """The resolved experiment."""
        return self.path / "experiment.toml"

    @property
    def task_file(self) -> Path:
        """The file with the task's scores and notes."""
        return self.path / "task.json"

    def write_task(self, scores: Sequence[Score], notes: Sequence[str] = ()) -> None:
        """Write the scores that results are judged by, and notes on how the data were prepared."""
        facts = {"scores": scores_to_json(scores), "notes": list(notes)}
        write_text(self.task_file, json.dumps(facts, indent=1, ensure_ascii=False) + "\n")

    def goal(self, experiment: Experiment | None = None) -> Goal:
        """The goal that results are judged by; accuracy if the folder is too old to say."""
        evaluate = (experiment or self.experiment()).evaluate
        scores = (
            scores_from_json(self._task()["scores"]) if self.task_file.exists() else (ACCURACY,)
        )
        return make_goal(scores, evaluate.target, evaluate.reading)

    def notes(self) -> list[str]:
        """Notes on how the data were prepared."""
        return list(self._task()["notes"]) if self.task_file.exists() else []

    def write_cross_tests(self, tests: CrossTests) -> None:
        """Write the scores of every model on every device's test data."""
        write_text(self.path / CROSS_TESTS, json.dumps(asdict(tests), indent=1) + "\n")

    def cross_tests(self) -> CrossTests | None:
        """The scores that `write_cross_tests` wrote, if any."""
        path = self.path / CROSS_TESTS
        return CrossTests(**dict(_read_json(path))) if path.exists() else None

    def _task(self) -> dict[str, Any]:
        return dict(_read_json(self.task_file))

    def seed_folder(self, seed: int) -> Path:
        """The folder of a seed's network, plan and methods."""
        return self.path / f"seed-{seed}"

    def method_folder(self, seed: int, method: str) -> Path:
        """The folder of one method's metrics and checkpoint."""
        return self.seed_folder(seed) / folder_name(method)

    def checkpoint(self, seed: int, method: str) -> Path:
        """The file of one method's state, unless each device keeps its own."""
        return self.method_folder(seed, method) / CHECKPOINT

    def devices_folder(self, seed: int, method: str) -> Path:
        """The folder of the folders of devices that run as processes."""
        return self.method_folder(seed, method) / DEVICES_FOLDER

    def experiment(self) -> Experiment:
        """The experiment that the folder holds.

        Raises:
            InputError: the folder holds no experiment.
        """
        if not self.experiment_file.exists():
            raise InputError(
                "run folder", str(self.path), "a folder that ssdfl run made", "Check the path."
            )
        return load_experiment(self.experiment_file)

    def write_experiment(self, experiment: Experiment, seed: int) -> None:
        """Write the experiment of a run made elsewhere, on the network in the seed's folder."""
        network = str((self.seed_folder(seed) / "network.json").resolve())
        section = experiment.network.model_copy(update={"spec": network})
        write_experiment(experiment.model_copy(update={"network": section}), self.experiment_file)

    def on_network(self, experiment: Experiment, network: Network) -> Experiment:
        """The experiment on a given network, which is written to ``network.json`` in the folder.

        Raises:
            InputError: the folder holds another network.
        """
        path, text = self.path / "network.json", to_json(network)
        if path.exists() and path.read_text(encoding="utf-8") != text:
            raise InputError(
                "network", network.title, f"the one in {path}", "Or choose another --out."
            )
        write_text(path, text)
        section = experiment.network.model_copy(update={"spec": str(path.resolve())})
        return experiment.model_copy(update={"network": section})

    def joined(self, experiment: Experiment) -> Experiment:
        """The experiment to continue: the folder's, with methods, seeds and cycles added.

        Another engine may continue it, unless one of the two runs a process per device: these
        engines keep their own files.

        Raises:
            InputError: the experiment differs in anything else.
        """
        if not self.experiment_file.exists():
            self.check_free()
            return experiment
        old = self.experiment()
        _check_same(old, experiment)
        methods = dict.fromkeys([*old.methods, *experiment.methods])
        seeds = dict.fromkeys([*old.seeds, *experiment.seeds])
        return experiment.model_copy(update={"methods": tuple(methods), "seeds": tuple(seeds)})

    def check_begun(self) -> None:
        """Refuse to resume a folder without a run: its name may be mistyped.

        Raises:
            InputError: there is no run; the remedy suggests the folder with the most similar name.
        """
        if not self.experiment_file.exists():
            remedy = f"{_meant(self.path)} To start a run, leave out --resume."
            raise InputError("--resume", str(self.path), "a folder with a run in it", remedy)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep other runs out of the folder for the block; remove leftovers of killed runs.

        Raises:
            InputError: another run writes into it; the error names its process.
        """
        missing = _missing_folders(self.path)
        self.path.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            try:
                stack.enter_context(locked(self.path / LOCK))
            except BlockingIOError as error:
                expected = f"a folder that no other run writes to ({error.strerror})"
                raise InputError(
                    "--out", str(self.path), expected, "Wait for it, or choose another folder."
                ) from None
            remove_temporaries(self.path)
            try:
                yield
            finally:
                self._remove_if_unused(missing)

    def _remove_if_unused(self, made: Sequence[Path]) -> None:
        """Remove folders made only for the lock, so that a refused run leaves nothing behind."""
        if made and [*self.path.iterdir()] == [self.path / LOCK]:
            with suppress(OSError):  # Windows cannot remove an open file
                (self.path / LOCK).unlink()
                for folder in made:
                    folder.rmdir()

    def check_free(self) -> None:
        """Refuse to write into a folder that already holds a run."""
        if self.experiment_file.exists() or any(self.path.glob("seed-*")):
            raise InputError(
                "--out",
                str(self.path),
                "a folder with no run in it",
                "Choose another, or --resume a whole one.",
            )

    def write_fact(self, seed: int, name: str, text: str) -> None:
        """Write a fact that a seed's runs share; on resuming, it must not have changed.

        Raises:
            InputError: the network, the plan or the devices have changed.
        """
        path = self.seed_folder(seed) / name
        if path.exists() and not _same_json(path.read_text(encoding="utf-8"), text):
            raise _changed(path, seed)
        write_text(path, text)

    def write_plan(self, seed: int, plan: Plan, name: str = "plan.json") -> None:
        """Write a seed's plan; on resuming, it must not have changed.

        The old file may be of version 2.

        Raises:
            InputError: the plan has changed.
        """
        path = self.seed_folder(seed) / name
        old = read_plan(path) if path.exists() else None
        if old is not None and replace(old, names=old.names or plan.names) != plan:
            raise _changed(path, seed)
        write_plan(plan, path)

    def plan(self, seed: int) -> Plan | None:
        """The plan that a seed's runs use, if it has been made."""
        plans = self.plans(seed)
        return plans[0] if plans else None

    def plans(self, seed: int) -> list[Plan]:
        """The plans that a seed's runs use, if made: `plan.json` and those for other exchanges.

        A method with other messages, or whose rule corrects drift, has its own clusters:
        ``plan-<bytes>.json``, with ``-late`` if messages leave after training and ``-corrected``.
        """
        others = sorted(self.seed_folder(seed).glob("plan-*.json"))
        first = self.seed_folder(seed) / "plan.json"
        try:
            paths = (first, *others) if first.exists() else ()
            return [_read_unchanged(read_plan, path) for path in paths]
        except InputError as error:
            raise InputError(
                error.what, error.got, error.expected, "Choose another --out."
            ) from None

    def model(
        self,
        method: str = "",
        seed: int | None = None,
        device: int | str = "mean",
        *,
        raw: bool = False,
    ) -> Any:
        """A trained model, a ``torch.nn.Module`` in evaluation mode; see `ssdfl.load_model`.

        Args:
            method: the method; may be left out if the run has only one.
            seed: the seed; by default the run's first.
            device: the device's number or name, or ``mean`` for the mean of all parameters.
            raw: whether it takes samples before encoding and predicts in the targets' units.

        Raises:
            InputError: no such method, seed or device; a missing or damaged checkpoint.
        """
        # Imported by name: this package needs no torch, and the loader is in a higher layer.
        load = cast(
            Callable[..., Any], import_object("ssdfl.experiments.models:load_model", "loader")
        )
        return load(self.path, method, seed, device, raw=raw)

    def write_rows(self, seed: int, method: str, rows: list[Row]) -> None:
        """Write one method's records so far."""
        write_table(self.method_folder(seed, method) / "metrics.parquet", rows, record_schema())

    def read_rows(self, seed: int, method: str) -> list[Row]:
        """One method's records so far; empty if it has not begun."""
        return read_records(self.method_folder(seed, method) / "metrics.parquet")

    def all_rows(self) -> list[Row]:
        """The records of all methods and seeds of the experiment, with ``method`` and ``seed``."""
        experiment = self.experiment()
        return [
            {"method": method, "seed": seed, **row}
            for method in experiment.methods
            for seed in experiment.seeds
            for row in self.read_rows(seed, method)
        ]

    def to_pandas(self) -> pandas.DataFrame:
        """All records as a data frame: one row per method, seed and cycle.

        Raises:
            InputError: pandas is not installed.
        """
        require("pandas", "pandas")
        return to_frame(self.all_rows())

    def write_all_rows(self) -> None:
        """Gather all records into ``metrics.parquet``."""
        write_table(self.path / "metrics.parquet", self.all_rows(), run_schema())

    def network(self, seed: int) -> Network:
        """A seed's network; the file is read again only if it has changed.

        Raises:
            InputError: the folder has no network.
        """
        return _read_unchanged(read_network, self.seed_folder(seed) / "network.json")

    def devices(self, seed: int) -> list[dict[str, Any]]:
        """Each device's optimizer, number of samples and label counts; empty if unknown."""
        path = self.seed_folder(seed) / "devices.json"
        return list(_read_json(path)) if path.exists() else []

    def write_bounds(self, rows: Iterable[BoundRow]) -> None:
        """Write measurements and their bounds, for reports."""
        write_table(self.path / "bounds.parquet", map(asdict, rows), bound_schema())

    def read_bounds(self) -> list[BoundRow]:
        """The rows that `write_bounds` wrote; empty if nothing was compared."""
        return [BoundRow(**row) for row in read_table(self.path / "bounds.parquet")]

    def note_versions(self, versions: Mapping[str, str]) -> None:
        """Add the versions of a resumed run to ``versions.json`` if they have changed."""
        known = self.versions()
        if not known or known[-1] != versions:
            write_text(
                self.path / "versions.json", json.dumps([*known, dict(versions)], indent=1) + "\n"
            )

    def versions(self) -> list[dict[str, str]]:
        """The versions that the run used: one entry, and one more for every change on resuming."""
        path = self.path / "versions.json"
        return list(_read_json(path)) if path.exists() else []


def _meant(path: Path) -> str:
    """A question that suggests the run folder with the most similar name; empty without one."""
    runs = [file.parent.name for file in path.parent.glob("*/experiment.toml")]
    similar = difflib.get_close_matches(path.name, runs, n=1)
    return f"Did you mean {path.parent / similar[0]}?" if similar else ""


def _missing_folders(path: Path) -> list[Path]:
    """The folder and its parents that do not exist, innermost first."""
    return [folder for folder in (path, *path.parents) if not folder.exists()]


def _read_unchanged(read: Callable[[Path], Result], path: Path) -> Result:
    """The content of a file; a large file is read again only if it has changed."""
    if not path.exists():
        return read(path)
    facts = path.stat()
    result: Result = _read_once(read, path, facts.st_mtime_ns, facts.st_size)
    return result


@lru_cache(maxsize=4)
def _read_once(read: Callable[[Path], Any], path: Path, changed_ns: int, size: int) -> Any:
    return read(path)


def _same_json(text: str, other: str) -> bool:
    """Whether two texts are the same JSON; older versions wrote large files with line breaks."""
    if text == other:
        return True
    with suppress(ValueError):
        return bool(json.loads(text) == json.loads(other))
    return False


def _changed(path: Path, seed: int) -> InputError:
    remedy = "Restore it, or choose another --out."
    return InputError(f"{path.name} of seed {seed}", "changed", f"the content of {path}", remedy)


def _check_same(old: Experiment, new: Experiment) -> None:
    before, after = flat(old.model_dump()), flat(new.model_dump())
    if new.cycles < old.cycles:
        expected = f"at least {old.cycles}, as in the run to resume"
        raise InputError("cycles", new.cycles, expected, "Or choose another --out.")
    may_differ = {"methods", "seeds", "cycles"}
    engines = [engine_traits(one.engine.name) for one in (old, new)]
    if not any(engine.process_per_device for engine in engines):
        may_differ |= {"engine.name", "engine.device"}
    for key in sorted((before.keys() | after.keys()) - may_differ):
        _check_value(key, before.get(key), after.get(key))


def _check_value(key: str, before: Any, after: Any) -> None:
    if before != after:
        expected = f"{before!r} as in the run to resume"
        raise InputError(key, after, expected, "Or choose another --out.")


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested values by the paths of their keys.

    Examples:
        >>> flat({"a": {"b": 1}, "c": 2})
        {'a.b': 1, 'c': 2}
    """
    found: dict[str, Any] = {}
    for key, value in values.items():
        found |= (
            flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
        )
    return found


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError("facts", str(path), "a JSON file", f"({error}) Restore it.") from error


def next_free_folder(name: str, root: Path) -> Path:
    """``root/name``, or the first of ``name-2``, ``name-3``, … that does not exist."""
    candidates = (root / (name if k == 1 else f"{name}-{k}") for k in range(1, 10**6))
    return next(path for path in candidates if not path.exists())


def newest_folder(name: str, root: Path) -> Path:
    """The folder of the latest run with this name, for resuming; ``root/name`` if there is none."""
    latest = root / name
    for k in range(2, 10**6):
        if not (root / f"{name}-{k}").exists():
            return latest
        latest = root / f"{name}-{k}"
    return latest
