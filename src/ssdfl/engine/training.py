"""Local training: E mini-batch steps of the optimizer, for one device or for groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from ssdfl.arrays import BoolArray, IntArray
from ssdfl.engine.gradients import gradient
from ssdfl.engine.indices import Index, index_of
from ssdfl.engine.job import Job
from ssdfl.engine.moves import Displacement, PartedDisplacement, PiecewiseMove, PlainMove
from ssdfl.engine.state import kinds_of, memory_name
from ssdfl.learning import Home, Optimizer, OptimizerKind, Task
from ssdfl.methods import Memory, Moment


@dataclass(frozen=True, eq=False)
class Kept:
    """What one device keeps from step to step besides its row: (1, k) rows by name.

    Attributes:
        optimizer: by the optimizer kind's own names.
        home: the model's buffers that are not mixed.
    """

    optimizer: Memory
    home: Home


def train_device(
    job: Job,
    task: Task,
    theta: Tensor,
    kept: Kept,
    device: int,
    t: int,
    steered: Tensor | None = None,
) -> tuple[Tensor, Kept]:
    """E local steps of one device, plainly.

    Args:
        task: the job's, or its twin in another thread.
        theta: (1, d) where it starts.
        steered: (1, P) what its rule adds to every local step's direction, if it does.

    Returns:
        (1, d) where it ends, and what it keeps.
    """
    optimizer, rate, layout = job.optimizers[device], job.rate(t), task.layout
    hyper = hyperparameters([optimizer], theta)
    scale = rate_multiples(job, [device], theta)
    memory = {name: rows.clone() for name, rows in kept.optimizer.items()}
    buffers = layout.buffers_of(theta[0], kept.home)
    trained = task.trained(theta)
    for e, samples in enumerate(job.samples(range(device, device + 1), t)[0]):
        g = gradient(job, task, trained[0], samples, (t, device, e), buffers)[None]
        direction, memory = optimizer.kind.update(g, trained, memory, **hyper)
        direction = direction if scale is None else scale * direction
        trained = trained - rate * (direction if steered is None else direction + steered)
    theta, home = layout.gathered(trained, buffers) if layout.keeps_state else (trained, {})
    return theta, Kept(memory, home)


def plain_move(
    job: Job, task: Task, theta: Tensor, kept: Kept, in_regime: bool, at: Moment, of_rule: Memory
) -> tuple[PlainMove, Kept]:
    """One device's local training, and what it keeps.

    Args:
        task: the job's, or its twin in another thread.
        theta: (1, d) where it starts.
        in_regime: it trained in the step before; otherwise a new regime starts.
        of_rule: what its rule keeps.
    """
    device = int(at.devices[0])
    kind = job.optimizers[device].kind
    memory = starting_memory(job, kind, task.trained(theta), kept.optimizer, in_regime)
    steered = task.trained(job.rule.steer(at, of_rule)) if job.rule.steers else None
    end, kept = train_device(job, task, theta, Kept(memory, kept.home), device, at.t, steered)
    return PlainMove(end - theta, at.rate, at.local_steps), kept


def keep_variances(task: Task, rows: Tensor, trained: Tensor) -> None:
    """Where adding a move to mixed values made a variance negative, restore training's value.

    Args:
        rows: (n, d) rows after a step, which are written into.
        trained: (n, d) the rows as training alone left them.
    """
    if task.layout.variances:
        columns = list(task.layout.variances)
        after = rows[:, columns]
        rows[:, columns] = torch.where(after < 0, trained[:, columns], after)


def starting_memory(
    job: Job, kind: OptimizerKind, theta: Tensor, memory: dict[str, Tensor], in_regime: bool
) -> dict[str, Tensor]:
    """What an optimizer keeps when a training step starts at (1, d) parameters.

    Args:
        in_regime: the device trained in the step before; otherwise a new regime starts.
    """
    fresh = kind.init(theta)
    new = np.array([not in_regime])
    return {
        name: fresh[name] if starts_anew(job, kind, name, new).all() else rows
        for name, rows in memory.items()
    }


def starts_anew(job: Job, kind: OptimizerKind, name: str, new_regime: BoolArray) -> BoolArray:
    """(n,) whose memory of a name starts anew, given who starts a regime."""
    if name in kind.restarts or job.reset == "regime":
        return new_regime
    return np.full_like(new_regime, job.reset == "step")


def hyperparameters(optimizers: Sequence[Optimizer], like: Tensor) -> dict[str, Tensor]:
    """(n, 1) each: the hyperparameters of optimizers of one kind."""
    names = optimizers[0].hyper
    return {
        name: torch.tensor(
            [[optimizer.hyper[name]] for optimizer in optimizers],
            dtype=like.dtype,
            device=like.device,
        )
        for name in names
    }


def rate_multiples(job: Job, devices: Sequence[int] | IntArray, like: Tensor) -> Tensor | None:
    """(n, 1) what devices' steps are multiplied by; None if it is 1 for all.

    It is a device's own learning rate over the job's, times its weight.
    """
    optimizers = [job.optimizers[device] for device in devices]
    if job.weights is None and all(optimizer.rate is None for optimizer in optimizers):
        return None
    rates = np.array(
        [1.0 if one.rate is None else one.rate / job.learning_rate for one in optimizers]
    )
    weights = 1.0 if job.weights is None else job.weights[np.asarray(devices)]
    multiples = torch.from_numpy(rates * weights)[:, None]
    return multiples.to(like.device, like.dtype)


@dataclass(frozen=True, eq=False)
class Part:
    """The devices of a group that have the same kind of optimizer.

    Attributes:
        kind: of optimizer.
        places: (n,) their places among the devices here.
        members: their rows of the group.
        kept: their rows of the kind's memory.
        hyper: (n, 1) hyperparameters.
    """

    kind: OptimizerKind
    places: IntArray
    members: Index
    kept: Index
    hyper: dict[str, Tensor]


@dataclass(frozen=True, eq=False)
class Group:
    """Some devices that train together.

    Attributes:
        devices: (n,) who.
        places: (n,) their places among the devices here.
        rows: the same as an index.
        parts: by kind of optimizer.
        multiples: (n, 1) what their steps are multiplied by, if not by 1 for all.
        width: d, numbers of a device's parameters.
    """

    devices: IntArray
    places: IntArray
    rows: Index
    parts: tuple[Part, ...]
    multiples: Tensor | None
    width: int

    @cached_property
    def is_by_kind(self) -> bool:
        """Whether devices with one kind of optimizer are neighbours in the group."""
        return all(isinstance(part.members, slice) for part in self.parts)


class GroupOptimizers:
    """The optimizers of the devices here, for groups of them.

    Memory of a kind lies together, so that devices with other optimizers take no room.

    Args:
        by_kind: put devices with one kind of optimizer next to each other within a group, so that
            their gradients and memory are views of the group's.
    """

    def __init__(self, job: Job, devices: IntArray, by_kind: bool = False) -> None:
        self._job, self._devices, self._by_kind = job, devices, by_kind
        self._like = job.task.initial_parameters
        self._holds = {kind: np.isin(devices, held) for kind, held in kinds_of(job).items()}
        self._rank = {kind: np.cumsum(holds) - 1 for kind, holds in self._holds.items()}

    def group(self, places: IntArray) -> Group:
        """The devices at some places, given in ascending order, ready to train."""
        if self._by_kind:
            places = np.concatenate([places[holds[places]] for holds in self._holds.values()])
        devices = self._devices[places]
        multiples = rate_multiples(self._job, devices, self._like)
        rows = index_of(places, self._like.device)
        return Group(devices, places, rows, tuple(self._parts(places)), multiples, len(self._like))

    def _parts(self, places: IntArray) -> list[Part]:
        found = []
        for kind, holds in self._holds.items():
            within = np.flatnonzero(holds[places])
            if not len(within):
                continue
            here = places[within]
            optimizers = [self._job.optimizers[device] for device in self._devices[here]]
            members = index_of(within, self._like.device)
            kept = index_of(self._rank[kind][here], self._like.device)
            found.append(Part(kind, here, members, kept, hyperparameters(optimizers, self._like)))
        return found

    def gathered(self, group: Group, memory: dict[str, Tensor]) -> list[dict[str, Tensor]]:
        """What each part's optimizers keep, by the kind's own names; views where possible."""
        return [self._rows(part, memory) for part in group.parts]

    def _rows(self, part: Part, memory: dict[str, Tensor]) -> dict[str, Tensor]:
        prefix = memory_name(part.kind.name, "")
        names = [name for name in memory if name.startswith(prefix)]
        return {name.removeprefix(prefix): memory[name][part.kept] for name in names}

    def start_step(
        self, group: Group, theta: Tensor, kept: list[dict[str, Tensor]], new_regime: BoolArray
    ) -> None:
        """Let start anew what has to: ``new_regime`` (N here,) says who did not train last."""
        for part, rows in zip(group.parts, kept, strict=True):
            initial: dict[str, Tensor] = {}
            for name, row in rows.items():
                starts = starts_anew(self._job, part.kind, name, new_regime[part.places])
                if starts.any():
                    initial = initial or part.kind.init(theta[part.members])
                    _start(row, initial[name], starts)

    def direction(
        self, group: Group, theta: Tensor, gradients: Tensor, kept: list[dict[str, Tensor]]
    ) -> Tensor:
        """(n, d) a group's descent direction; updates memory in place, overwrites gradients."""
        if len(group.parts) == 1:
            part = group.parts[0]
            gradients, kept[0] = _updated(part, theta, gradients, kept[0])
        else:
            self._part_by_part(group, theta, gradients, kept)
        return gradients if group.multiples is None else gradients * group.multiples

    def _part_by_part(
        self, group: Group, theta: Tensor, gradients: Tensor, kept: list[dict[str, Tensor]]
    ) -> None:
        for place, part in enumerate(group.parts):
            if part.kind.plain:
                continue
            own = gradients[part.members]
            direction, kept[place] = _updated(part, theta[part.members], own, kept[place])
            gradients[part.members] = direction

    def move(
        self,
        group: Group,
        theta: Tensor,
        gradients: list[Tensor],
        kept: list[dict[str, Tensor]],
        rate: float,
    ) -> PiecewiseMove:
        """One local step of a group that is by kind, along gradients that come in parts.

        Only devices whose optimizer asks for whole rows have their parts joined.
        """
        pieces = list[tuple[slice, Displacement | PartedDisplacement]]()
        for part, rows in zip(group.parts, kept, strict=True):
            assert isinstance(part.members, slice)
            own, here = [columns[part.members] for columns in gradients], theta[part.members]
            if part.kind.by_number:
                directions = _updated_in_parts(part, here, own, rows)
                pieces.append((part.members, PartedDisplacement(directions, rate)))
            else:
                direction, _ = _updated(part, here, torch.cat(own, dim=1), rows)
                pieces.append((part.members, Displacement(direction, rate)))
        return PiecewiseMove(pieces, rate)

    def scattered(
        self, group: Group, kept: list[dict[str, Tensor]], memory: dict[str, Tensor]
    ) -> None:
        """Write back what is no view."""
        for part, rows in zip(group.parts, kept, strict=True):
            if isinstance(part.kept, Tensor):
                _write(part, rows, memory)

    def store(self, group: Group, kept: list[dict[str, Tensor]], memory: dict[str, Tensor]) -> None:
        """Write what the optimizers keep into the memory."""
        for part, rows in zip(group.parts, kept, strict=True):
            _write(part, rows, memory)


def _write(part: Part, rows: dict[str, Tensor], memory: dict[str, Tensor]) -> None:
    for name, value in rows.items():
        memory[memory_name(part.kind.name, name)][part.kept] = value


def _start(rows: Tensor, initial: Tensor, starts: BoolArray) -> None:
    """Copy the initial rows of those that start anew."""
    chosen = torch.from_numpy(starts).to(rows.device)[:, None]
    rows.copy_(initial if starts.all() else torch.where(chosen, initial, rows))


def _updated(
    part: Part, theta: Tensor, gradients: Tensor, kept: dict[str, Tensor]
) -> tuple[Tensor, dict[str, Tensor]]:
    """A kind's update; what it returns as new memory is written into the old."""
    direction, renewed = part.kind.update(gradients, theta, dict(kept), **part.hyper)
    for name, value in renewed.items():
        if value is not kept[name]:
            kept[name].copy_(value)
    return direction, kept


def _updated_in_parts(
    part: Part, theta: Tensor, gradients: list[Tensor], kept: dict[str, Tensor]
) -> list[Tensor]:
    """The directions of a kind that updates every number by itself, in the gradients' parts."""
    if part.kind.plain:
        return gradients
    widths = [columns.shape[1] for columns in gradients]
    memory = {name: rows.split(widths, dim=1) for name, rows in kept.items()}
    return [
        _updated(part, values, columns, {name: rows[place] for name, rows in memory.items()})[0]
        for place, (values, columns) in enumerate(
            zip(theta.split(widths, dim=1), gradients, strict=True)
        )
    ]
