"""Experiments: read from TOML files into validated, frozen objects, and written back."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Annotated, Any

import tomli_w
from pydantic import (
    AfterValidator,
    BaseModel,
    Field,
    ValidationError,
)

from ssdfl.errors import InputError
from ssdfl.files import is_there, write_text
from ssdfl.records.sections import (
    ClustersSection,
    Count,
    DataSection,
    EngineSection,
    EvaluateSection,
    FaultsSection,
    ModelSection,
    NetworkSection,
    OptimizersSection,
    ScheduleSection,
    Section,
    Seed,
    ShareSection,
    TaskSection,
    TrainingSection,
    distinct,
)


class Experiment(Section):
    """Everything that determines a result. The defaults are the experiment of ``ssdfl run``."""

    name: Annotated[str, Field(pattern=r"^\w[\w.-]*$")] = "demo"
    methods: Annotated[tuple[str, ...], AfterValidator(distinct)] = Field(
        ("ssdfl", "ssdfl+extra", "ssdfl+extra:compressor=int8", "sdfl", "pdfl", "stc", "central"),
        min_length=1,
        strict=False,
    )
    seeds: Annotated[tuple[Seed, ...], AfterValidator(distinct)] = Field(
        (0, 1), min_length=1, strict=False
    )
    cycles: Count = 30
    network: NetworkSection = NetworkSection()
    clusters: ClustersSection = ClustersSection()
    schedule: ScheduleSection = ScheduleSection()
    faults: FaultsSection = FaultsSection()
    data: DataSection = DataSection()
    share: ShareSection = ShareSection()
    model: ModelSection = ModelSection()
    task: TaskSection = TaskSection()
    training: TrainingSection = TrainingSection()
    optimizers: OptimizersSection = OptimizersSection()
    evaluate: EvaluateSection = EvaluateSection()
    engine: EngineSection = EngineSection()

    @property
    def all_cycles(self) -> int:
        """The number of cycles of all methods and seeds."""
        return self.cycles * len(self.methods) * len(self.seeds)


def make_experiment(values: dict[str, Any]) -> Experiment:
    """An experiment from nested values, as TOML has them.

    Raises:
        InputError: the path of the first bad key, its value, and what was expected.

    Examples:
        >>> make_experiment({"training": {"learning_rate": 0.1}}).training.learning_rate
        0.1
    """
    try:
        return Experiment.model_validate(values)
    except ValidationError as error:
        raise _explain(error.errors()[0]) from None


def _explain(problem: Any) -> InputError:
    place = [part for part in problem["loc"] if part not in ("int", "float", "str", "bool")]
    key = ".".join(str(part) for part in place)
    if problem["type"] == "extra_forbidden":
        return _unknown_key(key, problem["input"])
    message = problem["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
    return InputError(
        key, problem["input"], message.replace("'", ""), f"Set {key} to such a value."
    )


def _unknown_key(key: str, value: object) -> InputError:
    *sections, last = key.split(".")
    known = list(_section(sections).model_fields)
    near = difflib.get_close_matches(last, known, n=1) or _elsewhere(last)
    remedy = f"Did you mean {near[0]}?" if near else "Remove it, or correct its name."
    return InputError(key, value, f"a known key ({', '.join(known)})", remedy)


def _elsewhere(name: str) -> list[str]:
    """The keys with this name in any section.

    Examples:
        >>> _elsewhere("loss"), _elsewhere("cycles"), _elsewhere("colour")
        (['task.loss'], ['cycles'], [])
    """
    sections = {field: _section([field]) for field in Experiment.model_fields}
    inner = [
        f"{section}.{name}"
        for section, kind in sections.items()
        if kind is not Experiment and name in kind.model_fields
    ]
    return inner + [name] * (name in Experiment.model_fields)


def _section(names: Sequence[str]) -> type[BaseModel]:
    """The class of a section, or of the innermost section that exists."""
    section: type[BaseModel] = Experiment
    for name in names:
        field = section.model_fields.get(name)
        annotation = field.annotation if field else None
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            section = annotation
    return section


def load_experiment(
    path: Path | str | None = None,
    settings: Sequence[str] = (),
    overrides: Mapping[str, Any] | None = None,
) -> Experiment:
    """An experiment from a TOML file (or the default one) with other values laid over it.

    A network, plan or parameter file named in the TOML file is looked up beside it first.

    Args:
        settings: texts ``a.b=value``, as users write them.
        overrides: ``{"a.b": value}``; these override everything else.

    Raises:
        InputError: the file is unreadable, or a key or value is not valid.

    Examples:
        >>> load_experiment(None, ["cycles=5"], {"schedule.tau_a": 3}).schedule.tau_a
        3
    """
    values = read_values(path, settings)
    for key, value in (overrides or {}).items():
        set_value(values, key, value)
    locate_files(values, Path())
    return make_experiment(values)


def _remedy(path: Path, error: Exception) -> str:
    """What to do about a file that is no experiment; it may be a network or data."""
    if path.suffix.lower() == ".toml" or not path.exists():
        return f"The reader says: {error}."
    return f"Use --set data.name={path} for data, or --set network.spec={path} for a network."


def read_values(path: Path | str | None, settings: Sequence[str]) -> dict[str, Any]:
    """The values of a TOML file with settings laid over them, not yet validated."""
    values: dict[str, Any] = {}
    if path is not None:
        path = Path(path)
        try:
            values = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise InputError("experiment", str(path), "a TOML file", _remedy(path, error)) from None
        locate_files(values, path.parent)
    for setting in settings:
        _lay_over(values, setting)
    return values


FILES = (
    ("network", "spec"),
    ("clusters", "plan"),
    ("data", "name"),
    ("data", "encoding"),
    ("model", "initial"),
)
"""The keys that may name a file."""


def locate_files(values: dict[str, Any], folder: Path) -> None:
    """Make the paths of files absolute, so that the experiment can be repeated from anywhere."""
    for section, key in FILES:
        table = values.get(section)
        text = table.get(key) if isinstance(table, dict) else None
        if isinstance(table, dict) and isinstance(text, str) and _is_path(folder / text, text):
            table[key] = str((folder / text).resolve())


def _is_path(path: Path, text: str) -> bool:
    return is_there(path) and (path.is_file() or looks_like_path(text))


def looks_like_path(text: str) -> bool:
    """Whether a text names a file or folder: it has a slash, or the suffix of a data file.

    Examples:
        >>> looks_like_path("./houses"), looks_like_path("houses.csv"), looks_like_path("digits")
        (True, True, False)
    """
    return "/" in text or text.endswith((".csv", ".parquet", ".npz"))


def _lay_over(values: dict[str, Any], setting: str) -> None:
    key, equals, text = setting.partition("=")
    if not equals:
        raise InputError(
            "--set", setting, "key=value", "Write it like --set training.learning_rate=0.1."
        )
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):  # numbers with thousands of digits raise these, too
        value = text
    set_value(values, key.strip(), value)


def set_value(values: dict[str, Any], key: str, value: Any) -> None:
    """Set the value of a key such as ``schedule.tau_a`` in nested values.

    Raises:
        InputError: a part of the key is a value, not a section.

    Examples:
        >>> values = {"schedule": {"tau_a": 3}}
        >>> set_value(values, "schedule.tau_r", 5)
        >>> values
        {'schedule': {'tau_a': 3, 'tau_r': 5}}
    """
    *sections, last = key.split(".")
    for section in sections:
        values = values.setdefault(section, {})
        if not isinstance(values, dict):
            raise InputError(key, value, f"{section} to be a section", "Correct the key.")
    values[last] = deepcopy(value)


def to_toml(experiment: Experiment) -> str:
    """The TOML file of an experiment, with every value written out.

    Examples:
        >>> make_experiment(tomllib.loads(to_toml(Experiment()))) == Experiment()
        True
    """
    return tomli_w.dumps(experiment.model_dump(mode="json"))


def write_experiment(experiment: Experiment, path: Path) -> None:
    """Write an experiment's TOML file."""
    write_text(path, to_toml(experiment))
