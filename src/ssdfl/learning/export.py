"""Models as files that other programs read: safetensors, PyTorch's export format, ONNX."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from ssdfl.errors import InputError, require
from ssdfl.files import atomic_path
from ssdfl.learning.facts import ModelFacts
from ssdfl.learning.inputs import arguments_of
from ssdfl.learning.normalisation import Normalisation

INPUT, OUTPUT = "input", "output"


class Normalised(nn.Module):
    """A model of raw inputs: they are normalised first."""

    def __init__(self, model: nn.Module, normalisation: Normalisation, dtype: torch.dtype) -> None:
        super().__init__()
        self.model = model
        self.register_buffer("mean", torch.from_numpy(normalisation.mean).to(dtype))
        self.register_buffer("deviation", torch.from_numpy(normalisation.deviation).to(dtype))

    def forward(self, raw: Tensor) -> Any:
        """What the model gives for raw inputs (n, …)."""
        return self.model((raw - self.mean) / self.deviation)  # type: ignore[operator]


def on_raw_inputs(model: nn.Module, facts: ModelFacts) -> nn.Module:
    """The model with the normalisation of its inputs before it, if there was one."""
    if facts.normalisation is None or not isinstance(facts.inputs, Tensor):
        return model
    return Normalised(model, facts.normalisation, facts.inputs.dtype).eval()


def write_model(model: nn.Module, facts: ModelFacts, path: Path, about: Mapping[str, Any]) -> None:
    """Write a model in the format that the name of the file ends with.

    ``.safetensors`` has parameters and buffers as ``state_dict`` names them; the normalisation is in its
    metadata. ``.pt2`` and ``.onnx`` are whole programs that take raw inputs, any number of samples at once.

    Args:
        about: where the model comes from; kept in the file's metadata.

    Raises:
        InputError: another ending, a missing extra, or a model that the format cannot express.
    """
    if path.suffix not in FORMATS:
        expected = f"a file that ends in {', '.join(FORMATS)}"
        raise InputError("--out", str(path), expected, "Choose one of these formats.")
    facts_and_more = {**about, **facts.to_json()}
    with atomic_path(path) as temporary:
        FORMATS[path.suffix](model, facts, temporary, facts_and_more)


def _write_safetensors(model: nn.Module, facts: ModelFacts, path: Path, about: dict[str, Any]) -> None:
    state, seen = {}, set[int]()
    for name, tensor in model.state_dict(keep_vars=True).items():
        if id(tensor) not in seen:  # a parameter with two names is written once, as safetensors demands
            state[name] = tensor.detach().clone().contiguous()
        seen.add(id(tensor))
    save_file(state, path, metadata={"ssdfl": json.dumps(about)})


def _write_pt2(model: nn.Module, facts: ModelFacts, path: Path, about: dict[str, Any]) -> None:
    program = _exported(model, facts)
    torch.export.save(program, path, extra_files={"ssdfl.json": json.dumps(about)})


def _write_onnx(model: nn.Module, facts: ModelFacts, path: Path, about: dict[str, Any]) -> None:
    for module in ("onnx", "onnxscript"):
        require(module, "onnx")
    names = list(facts.inputs) if isinstance(facts.inputs, dict) else None
    with _quiet(), _refusing("onnx"):
        program: Any = torch.onnx.export(
            _exported(model, facts),
            input_names=names or ([INPUT] if isinstance(facts.inputs, Tensor) else None),
            output_names=[OUTPUT],
            external_data=False,
            dynamo=True,
            verbose=False,
        )
    program.model.metadata_props["ssdfl"] = json.dumps(about)
    program.save(path, external_data=False)


def _exported(model: nn.Module, facts: ModelFacts) -> torch.export.ExportedProgram:
    """The model as a program of raw inputs, for any number of samples."""
    from torch.export import Dim  # takes tens of megabytes that other formats do not need

    places, names = arguments_of(facts.example())
    several = {0: Dim("batch")}
    shapes: Any = dict.fromkeys(names, several) if names else tuple(several for _ in places)
    with _quiet(), _refusing("pt2"):
        return torch.export.export(on_raw_inputs(model, facts), places, names, dynamic_shapes=shapes)


@contextmanager
def _refusing(kind: str) -> Iterator[None]:
    """Say that a model cannot be written in a format; torch's own account may take pages."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # torch has dozens of classes for this
        says = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        remedy = f"(torch says: {says}) Export it as .safetensors."
        raise InputError("model", "as it is", f"one that torch can write as {kind}", remedy) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the exporters' remarks about themselves."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


FORMATS: dict[str, Callable[[nn.Module, ModelFacts, Path, dict[str, Any]], None]] = {
    ".safetensors": _write_safetensors,
    ".pt2": _write_pt2,
    ".onnx": _write_onnx,
}
