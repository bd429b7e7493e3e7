"""Export models for other programs: safetensors, PyTorch's export format, ONNX."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from ssdfl.errors import InputError, require
from ssdfl.files import atomic_path
from ssdfl.learning.encoding import Column
from ssdfl.learning.facts import ModelFacts
from ssdfl.learning.inputs import Inputs, arguments_of
from ssdfl.learning.normalisation import Normalisation

INPUT, OUTPUT = "input", "output"
SAFETENSORS = ".safetensors"


class Normalised(nn.Module):
    """A model that takes raw inputs and normalises them first."""

    mean: Tensor
    deviation: Tensor

    def __init__(self, model: nn.Module, normalisation: Normalisation, dtype: torch.dtype) -> None:
        super().__init__()
        self.model = model
        self.register_buffer("mean", torch.from_numpy(normalisation.mean).to(dtype))
        self.register_buffer("deviation", torch.from_numpy(normalisation.deviation).to(dtype))

    def forward(self, raw: Tensor) -> Any:
        """The model's outputs for raw inputs (n, …)."""
        return self.model((raw - self.mean) / self.deviation)


class OfRows(nn.Module):
    """A model that takes raw rows of a table: numbers in their own units, categories as codes.

    Every input of the model belongs to a column and, if that is a category, to one of its codes.
    """

    sources: Tensor
    means: Tensor
    deviations: Tensor
    categories: Tensor
    codes: Tensor

    def __init__(self, model: nn.Module, columns: Sequence[Column], dtype: torch.dtype) -> None:
        super().__init__()
        self.model, self.dtype = model, dtype
        inputs = [
            (place, column.mean, column.deviation, bool(column.values), code)
            for place, column in enumerate(columns)
            for code in range(len(column.values) or 1)
        ]
        sources, means, deviations, categories, codes = map(torch.tensor, zip(*inputs, strict=True))
        self.register_buffer("sources", sources)
        self.register_buffer("means", means.double())
        self.register_buffer("deviations", deviations.double())
        self.register_buffer("categories", categories)
        self.register_buffer("codes", codes.double())

    def forward(self, rows: Tensor) -> Any:
        """The model's outputs for rows (n, columns); missing numbers are NaN."""
        raw = rows.double().index_select(1, self.sources)
        numbers = (raw - self.means) / self.deviations
        known = torch.where(torch.isnan(raw) | torch.isinf(raw), 0.0, numbers)
        inputs = torch.where(self.categories, (raw == self.codes).double(), known)
        return self.model(inputs.to(self.dtype))


class InUnits(nn.Module):
    """A model whose outputs are in the targets' own units."""

    mean: Tensor
    deviation: Tensor

    def __init__(self, model: nn.Module, target: Normalisation) -> None:
        super().__init__()
        self.model = model
        self.register_buffer("mean", torch.from_numpy(target.mean))
        self.register_buffer("deviation", torch.from_numpy(target.deviation))

        @wraps(model.forward)  # exporters read the names of its arguments
        def forward(*inputs: Tensor, **named: Tensor) -> Tensor:
            outputs: Tensor = model(*inputs, **named)
            return (outputs.double() * self.deviation + self.mean).to(outputs.dtype)

        self.forward = forward


def on_raw_inputs(model: nn.Module, facts: ModelFacts) -> nn.Module:
    """A model from raw inputs to predictions in their own units, if the encoding is known."""
    encoding = facts.encoding
    if isinstance(facts.inputs, Tensor) and encoding.columns:
        model = OfRows(model, encoding.columns, facts.inputs.dtype)
    elif isinstance(facts.inputs, Tensor) and encoding.normalisation is not None:
        model = Normalised(model, encoding.normalisation, facts.inputs.dtype)
    return (model if encoding.target is None else InUnits(model, encoding.target)).eval()


def raw_example(facts: ModelFacts) -> Inputs:
    """A few raw samples of zeros."""
    columns = facts.encoding.columns
    return torch.zeros(2, len(columns)) if columns else facts.example()


def write_model(model: nn.Module, facts: ModelFacts, path: Path, about: Mapping[str, Any]) -> None:
    """Write a model; the suffix of the file decides the format.

    ``.safetensors`` has parameters and buffers by their names in ``state_dict``, and the encoding
    of inputs and targets in its metadata. ``.pt2`` and ``.onnx`` are complete programs that take
    raw inputs, any number of samples at once, and predict in the targets' own units.

    Args:
        about: where the model comes from; kept in the file's metadata.

    Raises:
        InputError: the suffix is unknown, an extra is missing, or the format cannot express the
            model.
    """
    if path.suffix not in FORMATS:
        expected = f"a file that ends in {', '.join(FORMATS)}"
        raise InputError("--out", str(path), expected, "Choose one of these formats.")
    facts_and_more = {**about, **facts.to_json()}
    with atomic_path(path) as temporary:
        FORMATS[path.suffix](model, facts, temporary, facts_and_more)


def read_about(path: Path) -> dict[str, Any]:
    """Metadata of an exported file: the model's origin, its inputs, and the encoding.

    Raises:
        InputError: the suffix is unknown, or `write_model` did not write the file.
    """
    if path.suffix not in _ABOUT:
        raise InputError(
            "model file", str(path), f"one that ends in {', '.join(_ABOUT)}", "Check the path."
        )
    try:
        found: dict[str, Any] = json.loads(_ABOUT[path.suffix](path))
    except _UNREADABLE as error:
        remedy = f"({error or type(error).__name__}) Export it again."
        raise InputError("model file", str(path), "one that ssdfl export wrote", remedy) from None
    return found


def read_safetensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """An exported model's parameters and buffers, and its file's metadata.

    Raises:
        InputError: the format is another, or `write_model` did not write the file.
    """
    if path.suffix != SAFETENSORS:
        remedy = "Programs are loaded with torch.export.load or ONNX Runtime."
        raise InputError("model file", str(path), f"one that ends in {SAFETENSORS}", remedy)
    about = read_about(path)
    return load_file(path), about


def _about_safetensors(path: Path) -> str:
    with safe_open(path, framework="pt") as file:
        return str((file.metadata() or {})["ssdfl"])


def _about_pt2(path: Path) -> str:
    with ZipFile(
        path
    ) as archive:  # the same metadata as torch.export.load returns, without building the program
        name = next(name for name in archive.namelist() if name.endswith("extra/ssdfl.json"))
        return archive.read(name).decode()


def _about_onnx(path: Path) -> str:
    require("onnx", "onnx")
    import onnx

    try:
        properties = {one.key: one.value for one in onnx.load(path).metadata_props}
    except Exception as error:  # from protobuf, which is not a dependency
        raise ValueError(str(error)) from error
    return str(properties["ssdfl"])


def _write_safetensors(
    model: nn.Module, facts: ModelFacts, path: Path, about: dict[str, Any]
) -> None:
    state, seen = {}, set[int]()
    for name, tensor in model.state_dict(keep_vars=True).items():
        if (
            id(tensor) not in seen
        ):  # a parameter with two names is written once, as safetensors requires
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
    """The model as a program that takes raw inputs, for any number of samples."""
    from torch.export import Dim  # takes tens of megabytes that other formats do not need

    program, (places, names) = on_raw_inputs(model, facts), arguments_of(raw_example(facts))
    several = {0: Dim("batch")}
    shapes: Any = dict.fromkeys(names, several) if names else tuple(several for _ in places)
    with _quiet(), _refusing("pt2"):
        return torch.export.export(program, places, names, dynamic_shapes=shapes)


@contextmanager
def _refusing(kind: str) -> Iterator[None]:
    """Turn an export error into one line; torch's own message may take pages."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # torch has dozens of classes for this
        says = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        remedy = f"(torch says: {says}) Export it as .safetensors."
        raise InputError(
            "model", "as it is", f"one that torch can write as {kind}", remedy
        ) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress the exporters' messages."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


FORMATS: dict[str, Callable[[nn.Module, ModelFacts, Path, dict[str, Any]], None]] = {
    SAFETENSORS: _write_safetensors,
    ".pt2": _write_pt2,
    ".onnx": _write_onnx,
}

_UNREADABLE = (OSError, ValueError, KeyError, StopIteration, BadZipFile, SafetensorError)
"""The exceptions that readers raise for files that are broken or of another kind."""
_ABOUT: dict[str, Callable[[Path], str]] = {
    SAFETENSORS: _about_safetensors,
    ".pt2": _about_pt2,
    ".onnx": _about_onnx,
}
