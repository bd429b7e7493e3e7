"""Records of a made-up method, as logs get them."""

from dataclasses import asdict

from ssdfl.experiments import Advance
from ssdfl.experiments.logs import logging_to
from ssdfl.records import Record, RunFolder, load_experiment
from ssdfl.records.config import write_experiment

EXPERIMENT = load_experiment(None, ["name=logged", "cycles=4"])


def record(cycle):
    accuracy = 0.25 if cycle == 1 else float("nan")
    return Record(
        cycle=cycle,
        score=accuracy,
        score_std=accuracy,
        score_worst=accuracy,
        average_model_score=accuracy,
        loss=1 / cycle,
        consensus_distance=0.0,
        effective_gradient=0.0,
        transmissions=cycle,
        sent_bytes=cycle,
        time_s=0.5 * cycle,
        device_score=(0.2, 0.3),
    )


def advances(cycles, earlier=()):
    """Cycles that are done now, after some that an earlier run had done."""
    yield from (Advance(3, "own:method", cycle, None) for cycle in earlier)
    yield from (Advance(3, "own:method", cycle, record(cycle)) for cycle in cycles)


def log_cycles(name, out, cycles, earlier=()):
    with logging_to([name], EXPERIMENT, RunFolder(out)) as watch:
        for advance in advances(cycles, earlier):
            watch(advance)


def end_early(name, out, error):
    """Log a method that ends and one that an error interrupts."""
    with logging_to([name], EXPERIMENT, RunFolder(out)) as watch:
        for cycle in range(1, 5):
            watch(Advance(3, "done", cycle, record(cycle)))
        watch(Advance(3, "begun", 1, record(1)))
        raise error


def make_resumable(out, cycles):
    """A folder as an interrupted run leaves it."""
    folder = RunFolder(out)
    write_experiment(EXPERIMENT, folder.experiment_file)
    folder.write_rows(3, "own:method", [asdict(record(cycle)) for cycle in cycles])
