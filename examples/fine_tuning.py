"""Fine-tuning with a frozen trunk: devices train and send the head alone.

The trunk comes from a run with plenty of mixed data; devices that have two labels each then train a
head of their own on it. Frozen parameters are neither sent nor stored per device.
"""

import tempfile
from pathlib import Path
from typing import Any

from safetensors.torch import save_file
from torch import Tensor, nn

import ssdfl


class TrunkAndHead(nn.Module):
    """Two convolutions with batch normalisation as the trunk, a linear head on it."""

    def __init__(self, image_shape: tuple[int, ...], num_classes: int, channels: int) -> None:
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(image_shape[0], channels, 3, padding=1),
            nn.BatchNorm2d(channels),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(channels, 2 * channels, 3, padding=1),
            nn.BatchNorm2d(2 * channels),
            nn.ReLU(),
            nn.AdaptiveMaxPool2d(2),
            nn.Flatten(),
        )
        self.head = nn.Linear(8 * channels, num_classes)

    def forward(self, images: Tensor) -> Tensor:
        """Class scores of images (n, channels, height, width)."""
        scores: Tensor = self.head(self.trunk(images))
        return scores


def whole(image_shape: tuple[int, ...], num_classes: int, channels: int = 8) -> nn.Module:
    """Everything trains."""
    return TrunkAndHead(image_shape, num_classes, channels)


def frozen_trunk(image_shape: tuple[int, ...], num_classes: int, channels: int = 8) -> nn.Module:
    """Only the head trains; the trunk's batch normalisation keeps its statistics."""
    model = TrunkAndHead(image_shape, num_classes, channels)
    model.trunk.requires_grad_(False)
    return model


def run(out: Path, factory: str, **sections: dict[str, Any]) -> ssdfl.RunFolder:
    """A short run of SSD-FL with a model of this file."""
    model = {"name": f"{Path(__file__).stem}:{factory}", **sections.pop("model", {})}
    experiment = ssdfl.make_experiment(
        {
            "methods": ["ssdfl"],
            "seeds": [0],
            "cycles": 4,
            "network": {"spec": "barbell:size=4"},
            "clusters": {"number": 2},
            "model": model,
            **sections,
        }
    )
    return ssdfl.run_experiment(experiment, out)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        pretrained = run(Path(folder, "pretrained"), "whole", data={"partition": "iid"})
        state = pretrained.model("ssdfl", 0, "mean").state_dict()
        trunk = Path(folder, "trunk.safetensors")
        save_file({name: state[name] for name in state if name.startswith("trunk.")}, trunk)

        mild = {"partition": "labels", "labels_per_device": 2}
        plain = run(Path(folder, "plain"), "whole", data=mild)
        tuned = run(Path(folder, "tuned"), "frozen_trunk", data=mild, model={"initial": str(trunk)})
        for name, result in (("from scratch", plain), ("frozen trunk", tuned)):
            row = result.read_rows(0, "ssdfl")[-1]
            size = row["sent_bytes"] / row["transmissions"] / 1000
            print(f"{name}: {100 * row['score']:.1f} %, {size:.1f} kB a message")
