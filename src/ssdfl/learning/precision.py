"""Mixed precision: the type of forward and backward passes, and whether it helps."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Literal

import torch

Precision = Literal["float32", "bf16"]

_UNITS = ("avx512_bf16", "amx_bf16", "bf16", "sve_bf16")
"""What torch calls the units of CPUs that multiply in bf16, by their makers' names."""


def computing_in(precision: Precision, device: torch.device) -> AbstractContextManager[object]:
    """Matrix products and convolutions inside compute in this precision; parameters keep theirs.

    No cast is kept from one call to the next: parameters are views into a vector that changes.
    """
    if precision == "float32":
        return nullcontext()
    return torch.autocast(device.type, torch.bfloat16, cache_enabled=False)


def has_bf16_units(device: torch.device) -> bool:
    """Whether the hardware multiplies in bf16; without such units torch emulates it, at a loss."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    capabilities = getattr(torch.cpu, "get_capabilities", _older_capabilities)()
    return any(capabilities.get(unit, False) for unit in _UNITS)


def _older_capabilities() -> dict[str, bool]:
    """What torch before 2.10 knows of a CPU: the same function for all units of oneDNN's."""
    return {"bf16": bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())}


def precision_remark(precision: Precision, device: str) -> str:
    """A note before a run if bf16 brings no gain here; otherwise nothing."""
    if precision == "float32" or has_bf16_units(torch.device(device)):
        return ""
    return (
        f"engine.precision = {precision} brings no gain here: {device} has no units for it, "
        "and torch emulates them. float32 is faster."
    )
