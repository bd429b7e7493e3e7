"""Mixed precision: the type of forward and backward passes, and whether it helps."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Literal

import torch

from ssdfl.errors import InputError

Precision = Literal["float32", "bf16"]

_LIMIT = "ONEDNN_MAX_CPU_ISA"
"""The environment variable that limits the CPU instructions of torch's kernels."""

_UNITS = ("avx512_bf16", "amx_bf16", "bf16", "sve_bf16")
"""Torch's names for the bf16 units of CPUs."""


def computing_in(precision: Precision, device: torch.device) -> AbstractContextManager[object]:
    """A context in which matrix products and convolutions compute in this precision.

    Parameters keep their own. Casts are not cached between calls, since parameters are views into a
    vector that changes.
    """
    if precision == "float32":
        return nullcontext()
    return torch.autocast(device.type, torch.bfloat16, cache_enabled=False)


def has_bf16_units(device: torch.device) -> bool:
    """Whether the hardware multiplies in bf16; otherwise torch emulates it, which is slower."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    capabilities = _capabilities()
    return any(capabilities.get(unit, False) for unit in _UNITS)


def _capabilities() -> dict[str, bool]:
    found: dict[str, bool] = getattr(torch.cpu, "get_capabilities", _older_capabilities)()
    return found


def _older_capabilities() -> dict[str, bool]:
    """The CPU's capabilities in torch before 2.10, which has one function for all oneDNN units."""
    return {"bf16": bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())}


def check_bf16() -> None:
    """Refuse bf16 on a CPU on which it would end the process.

    Some virtual machines announce AMX but do not describe its tiles. Torch's kernels then stop
    with an illegal instruction, which nothing in the process can catch. So if a CPU announces AMX,
    another process tries it first.

    Raises:
        InputError: that process was killed.
    """
    tiles = _capabilities().get("amx_tile", False)
    if tiles and _LIMIT not in os.environ and not _survives_bf16():
        raise InputError(
            "engine.precision",
            "bf16",
            "a CPU whose bf16 units work: this one announces AMX and then stops torch",
            f"Set {_LIMIT}=AVX512_CORE_BF16 in the environment, or use float32.",
        )


@cache
def _survives_bf16() -> bool:
    """Whether a process that multiplies in bf16 survives."""
    product = "import torch; a = torch.ones(64, 64, dtype=torch.bfloat16); a @ a"
    return subprocess.run([sys.executable, "-c", product], capture_output=True).returncode >= 0


def precision_remark(precision: Precision, device: str) -> str:
    """A note if bf16 brings no gain on this device; otherwise empty."""
    if precision == "float32" or has_bf16_units(torch.device(device)):
        return ""
    return (
        f"engine.precision = {precision} brings no gain here: {device} has no units for it, "
        "and torch emulates them. float32 is faster."
    )
