"""Text, character by character: an LSTM learns six logbooks, each of which only one device has."""

import tempfile

import ssdfl

if __name__ == "__main__":
    experiment = ssdfl.make_experiment(
        {
            "methods": ["ssdfl", "pdfl"],
            "seeds": [0],
            "cycles": 3,
            "network": {"spec": "ring:n=6"},
            "data": {"name": "logbooks", "partition": "column", "column": "book"},
            "model": {"name": "lstm", "options": {"hidden": 24}},
            "training": {"learning_rate": 0.5},
            "evaluate": {"samples": 60, "target": 20.0},
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        run = ssdfl.run_experiment(experiment, folder + "/run")
        for row in run.all_rows():
            perplexity, right = row["score"], row["score_2"]
            name = f"{row['method']:>6} cycle {row['cycle']}"
            print(f"{name}: perplexity {perplexity:.1f}, {right:.0%} right")
