"""Use a run's model without ssdfl: its parameters, or a program that takes raw images."""

import json
import tempfile
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import load_file
from sklearn.datasets import load_digits
from torch import Tensor, nn

import ssdfl
from ssdfl.experiments import export_model


def plain_mlp() -> nn.Module:
    """The model that the run trains, in plain PyTorch."""
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))


def normalisation(path: Path) -> tuple[Tensor, Tensor]:
    """The mean and deviation of raw images that the metadata of an exported file tells."""
    with safe_open(path, framework="pt") as file:
        about = json.loads(file.metadata()["ssdfl"])["normalisation"]
    return torch.tensor(about["mean"]), torch.tensor(about["deviation"])


def right(scores: Tensor, labels: Tensor) -> float:
    """How many per cent of the labels were given the highest score."""
    return 100 * float((scores.argmax(dim=1) == labels).float().mean())


if __name__ == "__main__":
    values = {
        "methods": ["ssdfl"],
        "seeds": [0],
        "cycles": 10,
        "network": {"spec": "barbell:size=4"},
    }
    images, labels = load_digits(return_X_y=True)
    raw, classes = torch.tensor(images, dtype=torch.float32).view(-1, 1, 8, 8), torch.tensor(labels)
    with tempfile.TemporaryDirectory() as name:
        folder = ssdfl.run_experiment(ssdfl.make_experiment(values), Path(name, "run"))

        export_model(folder.path, Path(name, "model.safetensors"), "ssdfl", seed=0, device=3)
        model = plain_mlp()
        model.load_state_dict(load_file(Path(name, "model.safetensors")))
        mean, deviation = normalisation(Path(name, "model.safetensors"))
        share = right(model((raw - mean) / deviation), classes)
        print(f"model.safetensors: {share:.1f} % of all digits")

        export_model(folder.path, Path(name, "model.pt2"), "ssdfl", seed=0, device=3)
        program = torch.export.load(Path(name, "model.pt2")).module()
        print(f"model.pt2:         {right(program(raw), classes):.1f} %, on raw images")
