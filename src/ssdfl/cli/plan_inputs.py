"""The inputs of ``ssdfl plan``: measured on an experiment's data, or assumed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ssdfl.clusters import (
    Device,
    FormationSettings,
    Plan,
    read_devices,
    unknown_devices,
    with_device_costs,
)
from ssdfl.graph import Network, load_network
from ssdfl.records.formation import TaskFacts, formation_settings

if TYPE_CHECKING:
    from ssdfl.learning import Dataset
    from ssdfl.records import Experiment
    from ssdfl.records.sections import DataSection

DEVICES = "devices"
"""The key in a plan's settings under which the device file is recorded."""


@dataclass(frozen=True)
class PlanInputs:
    """The inputs of formation, and where they come from.

    Attributes:
        source: where the values come from that the user did not give.
        given: the values that the user gave, as text by name, such as ``devices``.
    """

    network: Network
    devices: Sequence[Device]
    settings: FormationSettings
    source: str
    given: Mapping[str, str] = field(default_factory=dict)

    def with_devices(self, path: Path) -> PlanInputs:
        """Inputs with the devices of a CSV file; if it has no labels, devices keep theirs."""
        devices = read_devices(path, self.network.names, self.devices)
        network = with_device_costs(self.network, path)
        given = {**self.given, "devices": f"devices of {path}"}
        return replace(self, devices=devices, network=network, given=given)

    def recorded_in(self, plan: Plan, before: Mapping[str, Any] | None = None) -> Plan:
        """A plan that also names the device file, or the previous plan's if none was given."""
        devices = self.given.get("devices") or (before or {}).get(DEVICES)
        return replace(plan, settings={**plan.settings, DEVICES: devices}) if devices else plan

    def forgotten(self, before: Plan) -> str:
        """A note if an earlier plan was made with a device file, and this one is not."""
        devices = before.settings.get(DEVICES)
        if devices is None or "devices" in self.given:
            return ""
        return (
            f"note: the old plan was made with the {devices}, which this repair does not use: "
            "give the file again with --devices."
        )

    def with_constants(self, values: Mapping[str, Any]) -> PlanInputs:
        """Inputs with constants for which an experiment has no key."""
        constants = replace(self.settings.constants, **values)
        return replace(self, settings=replace(self.settings, constants=constants)).as_given(values)

    def with_settings(self, values: Mapping[str, Any]) -> PlanInputs:
        """Inputs with formation settings for which an experiment has no key."""
        return replace(self, settings=replace(self.settings, **values)).as_given(values)

    def as_given(self, names: Mapping[str, Any]) -> PlanInputs:
        """Inputs with some values marked as given by the user."""
        facts = self._facts()
        return replace(
            self, given={**self.given, **{name: facts[name] for name in names if name in facts}}
        )

    def _facts(self) -> dict[str, str]:
        """The values that only a task or the user can provide, as text."""
        constants = self.settings.constants
        return {
            "devices": "what devices hold" if len(set(self.devices)) > 1 else "all devices alike",
            "gradient_bound": f"B = {constants.gradient_bound:.4g}",
            "smoothness": f"γ̂ = {constants.smoothness:.4g}",
            "initial_loss": f"L(θ⁰) = {constants.initial_loss:.4g}",
            "message_bytes": f"{self.settings.message_bytes:,} bytes per message",
        }

    def explain(self) -> str:
        """Which values are given, measured or assumed, in one line."""
        others = [text for name, text in self._facts().items() if name not in self.given]
        parts = [("given", list(self.given.values())), (self.source, others)]
        return "; ".join(f"{source}: {', '.join(texts)}" for source, texts in parts if texts)


def gather_inputs(experiment: Experiment, measure: bool, data: Path | None) -> PlanInputs:
    """The inputs for planning an experiment's first seed.

    Args:
        measure: load data and model and measure as ``ssdfl run`` does, if the data are on disk.
            Otherwise constants are assumed, all devices are alike, and torch is not imported.
        data: folder with data sets.
    """
    source = "assumed (--experiment measures it)"
    dataset = None
    if measure:
        dataset = _dataset_on_disk(experiment.data, data)
        name = experiment.data.name
        source = f"assumed, as {name} is not on disk (ssdfl data fetch {name})"
    inputs = _assumed(experiment, source) if dataset is None else _measured(experiment, dataset)
    if experiment.clusters.gradient_bound:
        return inputs.as_given({"gradient_bound": experiment.clusters.gradient_bound})
    return inputs


def with_given(
    inputs: PlanInputs,
    devices: Path | None,
    constants: Mapping[str, Any],
    settings: Mapping[str, Any],
) -> PlanInputs:
    """Inputs with the values of options for which an experiment has no key."""
    if devices is not None:
        inputs = inputs.with_devices(devices)
    return inputs.with_constants(constants).with_settings(settings)


def _assumed(experiment: Experiment, source: str) -> PlanInputs:
    network = load_network(experiment.network.spec, default_seed=experiment.seeds[0])
    settings = formation_settings(experiment, TaskFacts())
    return PlanInputs(network, unknown_devices(network), settings, source)


def _measured(experiment: Experiment, dataset: Dataset) -> PlanInputs:
    from ssdfl.preparation import draw, measured_settings, shared_devices

    seed = experiment.seeds[0]
    network, task, optimizers = draw(experiment, seed, dataset)
    devices = shared_devices(experiment, task, optimizers, seed)
    settings = measured_settings(experiment, task, seed)
    source = f"measured on {experiment.data.name} with {experiment.model.name}, seed {seed}"
    return PlanInputs(network, devices, settings, source)


def _dataset_on_disk(config: DataSection, folder: Path | None) -> Dataset | None:
    """A data set, or None if it would have to be downloaded."""
    from ssdfl.learning import DATASETS, load_data, locate

    known = DATASETS.get(config.name)
    if known is not None and known.source is not None and locate(known.source, folder) is None:
        return None
    return load_data(config, folder)
