"""``ssdfl export``: a trained model as a file for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ssdfl.cli.options import find_modules_in


def export(
    run: Annotated[Path, typer.Argument(help="A run's folder, or a device's.")],
    out: Annotated[
        Path, typer.Option(help="The file to write: model.safetensors, model.pt2 or model.onnx.")
    ],
    method: Annotated[
        str,
        typer.Option(help="The method, such as ssdfl; may be left out if the run has only one."),
    ] = "",
    seed: Annotated[int | None, typer.Option(help="The seed; by default the run's first.")] = None,
    device: Annotated[
        str, typer.Option(help="The device: its number or name, or mean for the mean of all.")
    ] = "mean",
) -> None:
    """Write a trained model for plain PyTorch, safetensors or ONNX Runtime.

    - `.safetensors`: parameters and buffers by their names in `state_dict`. The file's metadata say
      how inputs and targets were encoded.

    - `.pt2`: a program for `torch.export.load`. It takes raw samples and predicts in the targets'
      own units.

    - `.onnx`: the same for ONNX Runtime; needs the extra `onnx`.

    A model of your own is named `module:function`. The module has to be in RUN, in the working
    folder, or on PYTHONPATH.
    """
    from ssdfl.experiments.models import export_model

    find_modules_in(run)
    about = export_model(run, out, method, seed, device).about
    whose = "the mean model" if about["device"] == "mean" else f"device {about['device']}"
    after = f"after cycle {about['cycle']}"
    typer.echo(f"{out}: {whose} of {about['method']}, seed {about['seed']}, {after}.")
