"""The layout of a model's state in a device's row of numbers.

Devices mix rows. A row holds the trainable parameters in the model's order, then the float buffers
if they are mixed. Other buffers stay with their device ("at home"), each under its name. Frozen
parameters, and buffers that are not in a model's ``state_dict``, belong to the model and are the
same for all devices.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import torch
from torch import Tensor, nn

from ssdfl.errors import InputError

Buffers = Literal["mix", "local"]
"""Whether float buffers are mixed like parameters, or stay with their device."""

Home = dict[str, Tensor]
"""Buffers that stay with their devices, by name: (n, k) rows."""


@dataclass(frozen=True)
class Slot:
    """The position of a tensor of the model in a row, as arguments of `torch.as_strided`."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int

    @property
    def size(self) -> int:
        """The number of values."""
        return math.prod(self.shape)


@dataclass(frozen=True, eq=False)
class Layout:
    """The position of each tensor of a model's state.

    Attributes:
        parameters: the trainable parameters by name, in the model's order.
        buffers: the float buffers that are mixed; they come after the parameters.
        home: shapes and types of the buffers that stay with their device.
        variances: columns of the row that must not fall below 0.
    """

    parameters: dict[str, Slot]
    buffers: dict[str, Slot]
    home: dict[str, tuple[tuple[int, ...], torch.dtype]]
    variances: tuple[int, ...] = ()

    @cached_property
    def slots(self) -> dict[str, Slot]:
        """Everything in a row, in order."""
        return self.parameters | self.buffers

    @cached_property
    def num_trained(self) -> int:
        """The number of trainable values in a row."""
        return sum(slot.size for slot in self.parameters.values())

    @cached_property
    def width(self) -> int:
        """The number of values in a row."""
        return sum(slot.size for slot in self.slots.values())

    @property
    def keeps_state(self) -> bool:
        """Whether training changes more than parameters."""
        return bool(self.buffers or self.home)

    @cached_property
    def _sizes(self) -> list[int]:
        return [slot.size for slot in self.parameters.values()]

    def packed(self, tensors: Mapping[str, Tensor]) -> Tensor:
        """(d,) a row of named tensors."""
        return torch.cat([flat(tensors[name].detach()) for name in self.slots])

    def trained(self, row: Tensor) -> dict[str, Tensor]:
        """The parameters in the first numbers of a row, as views that gradients pass through."""
        named = zip(self.parameters.items(), row.split(self._sizes), strict=True)
        return {name: shaped(part, slot.shape) for (name, slot), part in named}

    def buffers_of(self, row: Tensor, home: Home) -> dict[str, Tensor]:
        """All buffers of one device, copied from its (d,) row and its (1, k) home rows."""
        mixed = {
            name: shaped(row[slot.offset : slot.offset + slot.size], slot.shape).detach().clone()
            for name, slot in self.buffers.items()
        }
        own = {name: home[name][0].view(shape).clone() for name, (shape, _) in self.home.items()}
        return mixed | own

    def gathered(self, trained: Tensor, buffers: Mapping[str, Tensor]) -> tuple[Tensor, Home]:
        """(1, d) row and home rows, from (1, P) trained parameters and all buffers."""
        mixed = [flat(buffers[name])[None] for name in self.buffers]
        home = {name: buffers[name].reshape(1, -1) for name in self.home}
        return torch.cat([trained, *mixed], dim=1), home

    def stacked(self, rows: Tensor) -> dict[str, Tensor]:
        """(n, …) views of (n, d) rows by name, shaped as in the model."""
        return {
            name: torch.as_strided(
                rows,
                (len(rows), *slot.shape),
                (rows.stride(0), *slot.stride),
                rows.storage_offset() + slot.offset,
            )
            for name, slot in self.slots.items()
        }


def flat(tensor: Tensor) -> Tensor:
    """Flatten a tensor into its part of a row; kernels of 2-D convolutions have channels last.

    CPUs compute fastest with that order. A device's parameters are then views into its row: nothing
    is copied or reordered.
    """
    return (tensor.permute(0, 2, 3, 1) if tensor.dim() == 4 else tensor).reshape(-1)


def shaped(part: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Reshape a part of a row into the model's tensor: the inverse of `flat`."""
    if len(shape) != 4:
        return part.view(shape)
    leaving, entering, height, width = shape
    return part.view(leaving, height, width, entering).permute(0, 3, 1, 2)


def make_layout(model: nn.Module, buffers: Buffers = "mix") -> Layout:
    """The layout of a model's state.

    Raises:
        InputError: some state has a type that can be neither mixed nor kept; the error names it.
    """
    parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
    _check_types("parameter", parameters, parameters)
    kept = _kept_buffers(model)
    mixed = {name: buffer for name, buffer in kept.items() if buffer.is_floating_point()}
    if buffers != "mix":
        mixed = {}
    _check_types("buffer", mixed, parameters)
    slots = _slots(parameters | mixed)
    of_mixed = _chosen(slots, mixed)
    return Layout(
        parameters=_chosen(slots, parameters),
        buffers=of_mixed,
        home={name: (tuple(b.shape), b.dtype) for name, b in kept.items() if name not in mixed},
        variances=tuple(_variance_columns(model, of_mixed)),
    )


def _chosen(slots: Mapping[str, Slot], names: Iterable[str]) -> dict[str, Slot]:
    return {name: slots[name] for name in names}


def _kept_buffers(model: nn.Module) -> dict[str, Tensor]:
    """The buffers that devices mix or keep, after checking their types."""
    kept = dict(changing_buffers(model))
    for name, buffer in kept.items():
        _check_kind(name, buffer)
    return kept


def _slots(tensors: Mapping[str, Tensor]) -> dict[str, Slot]:
    slots, offset = {}, 0
    for name, tensor in tensors.items():
        shape = tuple(tensor.shape)
        slots[name] = Slot(shape, shaped(flat(tensor.detach()), shape).stride(), offset)
        offset += tensor.numel()
    return slots


_REMEDIES = {"parameter": "Convert it.", "buffer": 'Convert it, or set model.buffers = "local".'}


def _check_types(
    kind: str, tensors: Mapping[str, Tensor], parameters: Mapping[str, Tensor]
) -> None:
    """Refuse tensors whose type differs from the first parameter's."""
    dtype = next(iter(parameters.values())).dtype
    for name, tensor in tensors.items():
        if tensor.dtype != dtype:
            expected = f"{dtype}, as the others have"
            raise InputError(f"type of {kind} {name}", str(tensor.dtype), expected, _REMEDIES[kind])


def _check_kind(name: str, buffer: Tensor) -> None:
    if buffer.is_complex() or buffer.is_quantized or buffer.is_sparse:
        got = f"{buffer.dtype} {buffer.layout}"
        raise InputError(
            f"buffer {name}", got, "dense real numbers", "Convert it, or use no buffer for it."
        )


def _variance_columns(model: nn.Module, slots: Mapping[str, Slot]) -> Iterator[int]:
    """The columns of running variances of normalisation layers."""
    for prefix, module in model.named_modules():
        name = f"{prefix}.running_var".lstrip(".")
        if isinstance(module, nn.modules.batchnorm._NormBase) and name in slots:
            yield from range(slots[name].offset, slots[name].offset + slots[name].size)


def frozen_modules(model: nn.Module) -> list[nn.Module]:
    """The outermost fully frozen modules, which stay in evaluation mode during training."""
    if _is_frozen(model):
        return [model]
    return [module for child in model.children() for module in frozen_modules(child)]


def _is_frozen(module: nn.Module) -> bool:
    parameters = list(module.parameters())
    return bool(parameters) and not any(parameter.requires_grad for parameter in parameters)


def changing_buffers(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """The buffers that training may change: in ``state_dict``, but not in a frozen module."""
    frozen = {buffer for module in frozen_modules(model) for buffer in module.buffers()}
    lasting = model.state_dict(keep_vars=True)
    for name, buffer in model.named_buffers():
        if name in lasting and buffer not in frozen:
            yield name, buffer
