"""The inputs and outputs of a model: enough to build and use it without its data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from ssdfl.errors import InputError
from ssdfl.learning.encoding import AS_THEY_ARE, Encoding
from ssdfl.learning.inputs import Inputs, map_inputs

_STRUCTURES = ("tensor", "tuple", "dict")


@dataclass(frozen=True, eq=False)
class ModelFacts:
    """The inputs and outputs of a model.

    Attributes:
        inputs: one sample without values: a tensor on torch's device ``meta``, or a tuple or dict
            of such tensors.
        outputs: the number of outputs per sample, such as one score for each class.
        encoding: how raw inputs and targets were encoded.
        notes: how the data were prepared, for people.
    """

    inputs: Inputs
    outputs: int
    encoding: Encoding = AS_THEY_ARE
    notes: tuple[str, ...] = field(default=())

    def to_json(self) -> dict[str, Any]:
        """The facts as JSON values."""
        return {
            "inputs": _described(self.inputs),
            "outputs": self.outputs,
            **self.encoding.to_json(),
            "notes": list(self.notes),
        }

    @staticmethod
    def from_json(values: dict[str, Any]) -> ModelFacts:
        """The inverse of `to_json`.

        Raises:
            InputError: the values are not facts of a model.
        """
        try:
            return ModelFacts(
                inputs=_sample(values["inputs"]),
                outputs=int(values["outputs"]),
                encoding=Encoding.from_json(values),
                notes=tuple(values["notes"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            expected = "the inputs and outputs of a model"
            raise InputError(
                "facts of a model", values, expected, f"({error!r}) Run it again."
            ) from None

    @property
    def input_shape(self) -> Any:
        """The shape of one sample, as model factories expect it."""
        return map_inputs(lambda part: tuple(part.shape), self.inputs)

    def example(self, samples: int = 2) -> Inputs:
        """The given number of samples, all zeros."""
        zeros: Inputs = map_inputs(
            lambda part: torch.zeros(samples, *part.shape, dtype=part.dtype), self.inputs
        )
        return zeros


def sample_of(inputs: Any) -> Inputs:
    """One sample of arrays (n, …), without its values."""
    sample: Inputs = map_inputs(lambda part: torch.as_tensor(part[:1])[0].to("meta"), inputs)
    return sample


def _described(sample: Inputs) -> dict[str, Any]:
    def of_part(part: torch.Tensor) -> dict[str, Any]:
        return {"shape": list(part.shape), "dtype": str(part.dtype).removeprefix("torch.")}

    kind = next(kind for kind in _STRUCTURES if kind == type(sample).__name__.lower())
    described = map_inputs(of_part, sample)
    return {kind: list(described) if isinstance(described, tuple) else described}


def _sample(described: dict[str, Any]) -> Inputs:
    def part(values: dict[str, Any]) -> torch.Tensor:
        dtype = getattr(torch, values["dtype"])
        return torch.empty(tuple(values["shape"]), dtype=dtype, device="meta")

    ((kind, values),) = described.items()
    if kind == "dict":
        return {name: part(of_name) for name, of_name in values.items()}
    return tuple(map(part, values)) if kind == "tuple" else part(values)
