"""A model of your own is one function; an experiment names it as ``package.module:factory``.

On the command line: ``ssdfl run --set model.name=examples.own_model:tiny_cnn`` from the
repository's root.
"""

import tempfile
from pathlib import Path

from torch import nn

import ssdfl


def tiny_cnn(image_shape: tuple[int, ...], num_classes: int, channels: int = 8) -> nn.Module:
    """One convolution, group-normalised, pooled, and a linear layer."""
    return nn.Sequential(
        nn.Conv2d(image_shape[0], channels, 3, padding=1),
        nn.GroupNorm(2, channels),
        nn.ReLU(),
        nn.AdaptiveMaxPool2d(4),
        nn.Flatten(),
        nn.Linear(16 * channels, num_classes),
    )


if __name__ == "__main__":
    experiment = ssdfl.make_experiment(
        {
            "methods": ["ssdfl", "pdfl"],
            "seeds": [0],
            "cycles": 8,
            "network": {"spec": "barbell:size=4"},
            "clusters": {"number": 2},
            "model": {"name": f"{Path(__file__).stem}:tiny_cnn", "options": {"channels": 16}},
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        for row in ssdfl.summarise(ssdfl.run_experiment(experiment, folder + "/run")):
            print(f"{row.method:>8}: {100 * row.score:.1f} % after {experiment.cycles} cycles")
