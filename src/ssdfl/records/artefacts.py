"""The paper's tables and figures as data: which runs each needs, and what the paper reports.

``reproduce/common.toml`` is shared by all artefacts: it holds the paper's setting, the values
calibrated for each data set, and profiles that shrink the setting. ``reproduce/<artefact>.toml``
says what varies, and ``<artefact>.csv`` holds the paper's numbers.
"""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product, takewhile
from pathlib import Path
from typing import Any

from ssdfl.errors import InputError
from ssdfl.records.cache import single_runs
from ssdfl.records.config import Experiment, make_experiment, set_value
from ssdfl.records.scores import READINGS

KINDS = ("table", "curves", "points", "bars", "bound", "costs")
WHOLE = ("model", "model.options")
MODELS_READ = dict(zip(READINGS, ("all", "mean"), strict=True))
"""The models that each reading tests. Testing all large models costs more than training them."""

Settings = Mapping[str, Any]
CaseKey = tuple[str, str, str]
"""Names of a panel, a point and a series."""


@dataclass(frozen=True)
class Variant:
    """A name and its settings: a panel, a point on its axis, or a method of the comparison.

    Attributes:
        thresholds: for a panel, the accuracies whose cost is reported.
        paper: for a series, its name in the paper if that differs.
    """

    name: str
    settings: Settings
    thresholds: tuple[float, ...] = ()
    paper: str = ""


@dataclass(frozen=True)
class Case:
    """One experiment of an artefact: a panel, a point on its axis and a method, for all seeds."""

    panel: str
    point: str
    series: str
    experiment: Experiment

    @property
    def key(self) -> CaseKey:
        """The key that identifies it among the artefact's cases."""
        return self.panel, self.point, self.series


@dataclass(frozen=True)
class Artefact:
    """A table or figure of the paper.

    Attributes:
        name: the name of its file.
        label: the label in the paper's source; empty for artefacts beyond the paper.
        kind: table, curves against cycles, points or bars of final accuracy, the bound against S,
            or the cost of accuracy in messages, bytes and simulated seconds.
        panels: blocks of the table, or small plots of the figure.
        points: the values on a panel's axis; one unnamed point if the axis is the cycle.
        series: the methods to compare.
        reading: the column of records that is reported as accuracy.
        profile: the profile that shrinks it.
        rule: the rule of methods that name none; if empty, each method's default.
        networks: replacements for networks as the paper states them.
        held: the seeds of each case that it has, if it is not whole.
    """

    name: str
    title: str
    label: str
    kind: str
    axis: str
    panels: tuple[Variant, ...]
    points: tuple[Variant, ...]
    series: tuple[Variant, ...]
    base: Settings
    reading: str
    expected: tuple[Mapping[str, str], ...]
    profile: str = ""
    rule: str = ""
    networks: Mapping[str, str] = field(default_factory=dict)
    held: Mapping[CaseKey, tuple[int, ...]] | None = None

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds. All cases have them, unless only what is finished was kept."""
        return max((case.experiment.seeds for case in self.cases), key=len)

    @property
    def is_even(self) -> bool:
        """Whether all cases have the same seeds."""
        return len({case.experiment.seeds for case in self.cases}) == 1

    @cached_property
    def cases(self) -> tuple[Case, ...]:
        """All experiments that it needs."""
        return tuple(self._cases())

    def _cases(self) -> Iterator[Case]:
        for panel, point, series in product(self.panels, self.points, self.series):
            values: dict[str, Any] = {"name": self.name}
            for settings in (self.base, panel.settings, point.settings, series.settings):
                lay_over(values, settings)
            self._read_as_calibrated(values)
            case = Case(panel.name, point.name, series.name, make_experiment(values))
            if self.held is None:
                yield case
            elif case.key in self.held:
                seeds = self.held[case.key]
                yield replace(case, experiment=case.experiment.model_copy(update={"seeds": seeds}))

    def _read_as_calibrated(self, values: dict[str, Any]) -> None:
        """Apply the profile's rule and networks to the values of a case."""
        spec = values["network"]["spec"]
        values["network"]["spec"] = self.networks.get(spec, spec)
        if self.rule:
            values["methods"] = [
                name if "+" in name else f"{name}+{self.rule}" for name in values["methods"]
            ]

    def part(self, names: Collection[str]) -> Artefact:
        """Keep only the panels, points and series with these names.

        If no name is that of a panel, all panels stay; points and series likewise.

        Raises:
            InputError: a name that the artefact does not have.
        """
        whole = (self.panels, self.points, self.series)
        known = [variant.name for variants in whole for variant in variants if variant.name]
        for name in names:
            _check_one_of(
                f"--only of {self.name}", name, known, "Name a panel, a point or a series."
            )
        kept = [_named(names, variants) or variants for variants in whole]
        return replace(self, panels=kept[0], points=kept[1], series=kept[2])

    def finished(self, is_finished: Callable[[Experiment], bool]) -> Artefact | None:
        """Keep the first seeds of every case, as far as their runs are finished.

        Only the first ones, so that methods can be compared seed by seed. Cases without any go.
        None if no case is left.
        """
        if self.kind == "bound":
            return self
        found = {case.key: _first_seeds(case.experiment, is_finished) for case in self.cases}
        held = {key: seeds for key, seeds in found.items() if seeds}
        if not held:
            return None
        panels, points, series = (set(names) for names in zip(*held, strict=True))
        return replace(
            self,
            panels=_named(panels, self.panels),
            points=_named(points, self.points),
            series=_named(series, self.series),
            held=held,
        )

    def runs(self) -> list[Experiment]:
        """The runs it needs, each of one method and one seed; none for the bound."""
        if self.kind == "bound":
            return []
        return [one for case in self.cases for one in single_runs(case.experiment)]


def _named(names: Collection[str], variants: Iterable[Variant]) -> tuple[Variant, ...]:
    return tuple(one for one in variants if one.name in names)


def _first_seeds(
    experiment: Experiment, is_finished: Callable[[Experiment], bool]
) -> tuple[int, ...]:
    """The seeds before the first that has an unfinished run."""
    missing = {one.seeds[0] for one in single_runs(experiment) if not is_finished(one)}
    return tuple(takewhile(lambda seed: seed not in missing, experiment.seeds))


def lay_over(values: dict[str, Any], settings: Settings) -> None:
    """Set ``{"a.b": value}`` or ``{"a": {"b": value}}`` in nested values; later settings win.

    A model is replaced together with its options, since another model has other options.

    Examples:
        >>> values = {"schedule": {"tau_a": 3}}
        >>> lay_over(values, {"schedule.tau_r": 5, "data": {"name": "fmnist"}})
        >>> values
        {'schedule': {'tau_a': 3, 'tau_r': 5}, 'data': {'name': 'fmnist'}}
    """
    for key, value in settings.items():
        if isinstance(value, Mapping) and key not in WHOLE:
            lay_over(values, {f"{key}.{inner}": one for inner, one in value.items()})
        else:
            set_value(values, key, value)


def paper_folder() -> Path:
    """The folder that describes the artefacts: working folder, source tree or package."""
    here = Path(__file__)
    places = (Path("reproduce"), here.parents[3] / "reproduce", here.parents[1] / "reproduce")
    found = next((place for place in places if (place / "common.toml").is_file()), None)
    if found is None:
        expected = "a folder with common.toml and artefacts"
        raise InputError("reproduce", "not found", expected, "Run it in a clone of the repository.")
    return found


def artefact_names(folder: Path) -> list[str]:
    """All artefacts that a folder describes."""
    return sorted(path.stem for path in folder.glob("*.toml") if path.stem != "common")


def load_artefact(
    name: str,
    profile: str = "small",
    *,
    seeds: int | None = None,
    reading: str | None = None,
    folder: Path | None = None,
) -> Artefact:
    """An artefact in a profile.

    Args:
        seeds: the number of seeds, from 0 on, instead of the profile's.
        reading: what is reported as accuracy, instead of the profile's. Runs are the profile's
            own if they test what is read.

    Raises:
        InputError: the artefact or profile does not exist, or its file is not valid.
    """
    folder = folder or paper_folder()
    _check_one_of("artefact", name, artefact_names(folder), "See: ssdfl reproduce --list.")
    common, own = _read(folder / "common.toml"), _read(folder / f"{name}.toml")
    _check_one_of("--profile", profile, common["profile"], "Choose one.")
    _check_one_of(f"{name}.toml: kind", own["kind"], KINDS, "Correct the file.")
    base = _base_settings(common, own, profile)
    shrunk = common["profile"][profile]
    usual = own.get("reading", shrunk.get("reading", common["reading"]))
    _check_one_of(f"{name}.toml: reading", usual, READINGS, "Correct the file.")
    reading = reading or usual
    _check_one_of("--reading", reading, READINGS, "Choose one.")
    lay_over(base, {"evaluate.models": _models_to_test(usual, reading)})
    if seeds is not None:
        base["seeds"] = list(range(seeds))
    return Artefact(
        name=name,
        title=own["title"],
        label=own["label"],
        kind=own["kind"],
        axis=own.get("axis", ""),
        panels=_variants(own["panel"]),
        points=_variants(own.get("point", [{"name": ""}])),
        series=_variants(_of_kind(own["kind"], own.get("series", common["series"]))),
        base=base,
        reading=reading,
        expected=_expected(folder / f"{name}.csv"),
        profile=profile,
        rule=shrunk.get("rule", ""),
        networks=shrunk.get("networks", {}),
    )


def _models_to_test(usual: str, reading: str) -> str:
    """The models to test so that the usual reading is recorded, and this one, too."""
    return MODELS_READ[min(usual, reading, key=READINGS.index)]


def _check_one_of(what: str, value: str, known: Collection[str], remedy: str) -> None:
    if value not in known:
        raise InputError(what, value, f"one of {', '.join(known)}", remedy)


def _base_settings(common: Settings, own: Settings, profile: str) -> dict[str, Any]:
    """The settings that all cases share: the paper's, calibrated, and shrunk by the profile."""
    dataset, shrunk = own["dataset"], common["profile"][profile]
    layers = (
        common["setting"],
        common["calibrated"][dataset],
        own.get("set", {}),
        shrunk.get("set", {}),
        shrunk.get(dataset, {}),
    )
    base: dict[str, Any] = {}
    for settings in layers:
        lay_over(base, settings)
    return base


def _variants(tables: Iterable[Mapping[str, Any]]) -> tuple[Variant, ...]:
    return tuple(
        Variant(
            table["name"],
            table.get("set", {}),
            tuple(table.get("thresholds", ())),
            table.get("paper", ""),
        )
        for table in tables
    )


def _of_kind(kind: str, tables: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The series for an artefact of this kind: the ones for this kind, and the ones for any."""
    return [table for table in tables if kind in table.get("kinds", KINDS)]


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise InputError(
            "artefact", str(path), "a TOML file", f"The reader says: {error}."
        ) from None


def _expected(path: Path) -> tuple[Mapping[str, str], ...]:
    if not path.exists():
        return ()
    with path.open(newline="", encoding="utf-8") as file:
        return tuple(csv.DictReader(file))
