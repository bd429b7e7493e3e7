"""A table with a file for each device: a regression whose devices hold 20 to 200 samples.

The same folder, ``devices/<name>.csv``, is what ``data.name`` names in an experiment's TOML file.
"""

import csv
import tempfile
from pathlib import Path

import ssdfl
from ssdfl.rng import generator


def write_device(path: Path, device: int, rows: int) -> None:
    """One device's samples: a machine's power by its load, its age and its room."""
    rng = generator(0, "machines", device)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["load", "age", "room", "watts"])
        for _ in range(rows):
            load, age = rng.random(), rng.uniform(0, 10)
            room = ["cold", "warm"][int(rng.integers(2))]
            watts = (
                50 + (120 + 5 * device) * load + 3 * age + 15 * (room == "warm") + rng.normal(0, 5)
            )
            writer.writerow([f"{load:.3f}", f"{age:.1f}", room, f"{watts:.1f}"])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        devices = Path(folder) / "devices"
        devices.mkdir()
        for device in range(8):
            write_device(devices / f"{device}.csv", device, rows=25 + 30 * device)
        experiment = ssdfl.make_experiment(
            {
                "methods": ["ssdfl", "pdfl"],
                "seeds": [0],
                "cycles": 10,
                "network": {"spec": "barbell:size=4"},
                "data": {"name": str(devices), "target": "watts"},
                "model": {"name": "mlp", "options": {"hidden": 16}},
            }
        )
        run = ssdfl.run_experiment(experiment, Path(folder) / "run")
        score = run.goal().score
        print(*run.notes(), sep="\n")
        for row in ssdfl.summarise(run):
            shown = f"{score.label} {score.shown(row.score)}"
            print(f"{row.method:>8}: {shown} after {experiment.cycles} cycles")
