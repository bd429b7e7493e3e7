import math
import re

import pytest
from PIL import Image

from ssdfl.clusters import spectral_bisection
from ssdfl.experiments import RunFolder, load_experiment, run_experiment
from ssdfl.graph import load_network, make_network
from ssdfl.report import cells, draw_curves, draw_network, headers, headline, save, summarise, write_report
from ssdfl.report.figures import COLOURS


def rows_of(method, seed, accuracies):
    return [
        {
            "method": method,
            "seed": seed,
            "cycle": cycle,
            "accuracy": accuracy,
            "accuracy_worst": accuracy - 0.1,
            "sent_bytes": 1_000_000 * cycle,
            "time_s": 0.5 * cycle,
            "consensus_distance": 1 / cycle,
        }
        for cycle, accuracy in enumerate(accuracies, start=1)
    ]


class FakeFolder(RunFolder):
    """A run folder whose records are given."""

    def __init__(self, experiment, rows):
        object.__setattr__(self, "fake", (experiment, rows))

    def experiment(self):
        return self.fake[0]

    def all_rows(self):
        return self.fake[1]


@pytest.fixture
def folder():
    experiment = load_experiment(
        None, ["methods=['ssdfl', 'pdfl', 'central']", "evaluate.target_accuracy=0.5"]
    )
    rows = [
        *rows_of("ssdfl", 0, [0.2, 0.6, 0.8]),
        *rows_of("ssdfl", 1, [0.5, 0.6, 0.7]),
        *rows_of("pdfl", 0, [0.2, math.nan, 0.5]),
        *rows_of("pdfl", 1, [0.2, math.nan, 0.4]),
        *rows_of("central", 0, [0.9, 0.9, 0.9]),
        *rows_of("central", 1, [0.9, 0.9, 0.9]),
    ]
    return FakeFolder(experiment, rows)


def test_summaries_by_hand(folder):
    ours, periodic, _ = summarise(folder)
    assert ours.accuracy == pytest.approx(0.75)
    assert ours.accuracy_std == pytest.approx(0.05)
    assert ours.accuracy_worst == pytest.approx(0.65)
    assert (ours.cycles_to_target, ours.bytes_to_target, ours.seconds_to_target) == (1.5, 1_500_000, 0.75)
    assert (periodic.seeds_at_target, periodic.seeds) == (1, 2)
    assert periodic.cycles_to_target == 3
    assert cells(periodic) == [
        "pdfl",
        "45.0 ±5.0",
        "35.0",
        "3.0 (1/2)",
        "3.0 (1/2)",
        "1.50 (1/2)",
        "3.0",
        "1.50",
    ]
    assert len(headers(0.5)) == len(cells(ours))


def test_a_target_that_nobody_reaches(folder):
    experiment = load_experiment(None, ["methods=['pdfl']", "evaluate.target_accuracy=0.99"])
    (summary,) = summarise(FakeFolder(experiment, folder.all_rows()))
    assert summary.cycles_to_target is None
    assert cells(summary)[3] == "–"
    assert "No method reached 99 %" in headline([summary], 0.99)


def test_the_headline_leaves_the_reference_out(folder):
    text = headline(summarise(folder), 0.5)
    assert text.startswith("Best final accuracy: ssdfl, 75.0 %.")
    assert "Fewest bytes to 50 %: ssdfl, 1.5 MB." in text
    assert text.endswith("The reference central is not ranked.")


def test_curves_have_a_line_and_a_band_per_method(folder):
    figure = draw_curves(folder.all_rows(), "accuracy", "accuracy")
    assert [axes.get_xlabel() for axes in figure.axes] == ["cycles", "megabytes sent", "simulated seconds"]
    cycles, megabytes, _ = figure.axes
    assert cycles.lines[0].get_ydata() == pytest.approx([0.35, 0.6, 0.75])
    assert megabytes.lines[0].get_xdata() == pytest.approx([1, 2, 3])
    assert cycles.lines[1].get_xdata() == pytest.approx([1, 3])  # a cycle without a test is left out
    assert len(cycles.lines) == len(cycles.collections) == 3


def test_long_and_odd_names_are_drawn_as_they_are(tmp_path):
    network = make_network(3, [(0, 1), (1, 2)], names=["Zürich", "a$^$", "c"])
    figure = draw_network(network)
    assert [text.get_text() for text in figure.axes[0].texts] == ["Zürich", "a$^$", "c"]
    save(figure, tmp_path / "a.png")


@pytest.mark.parametrize("spec", ["sites:sites=4,size=5", "er:n=70,p=0.1", "complete:n=1", "rgeo:n=10"])
def test_networks_are_drawn(spec, tmp_path):
    network = load_network(spec)
    clusters = spectral_bisection(network, min(4, network.num_devices))
    figure = draw_network(network, clusters)
    save(figure, tmp_path / "a.png")
    with Image.open(tmp_path / "a.png") as image:
        colours = {colour for _, colour in image.convert("RGB").getcolors(1 << 20)}
    for place in range(len(clusters)):
        wanted = tuple(bytes.fromhex(COLOURS[place][1:]))
        assert wanted in colours


def test_a_report_is_one_file_that_holds_everything(tmp_path):
    settings = [
        "name=small",
        "cycles=2",
        "data.name=helpers:tiny_data",
        "data.labels_per_device=2",
        "network.spec=barbell:size=3",
        "clusters.number=2",
        "methods=['ssdfl', 'pdfl']",
    ]
    folder = run_experiment(load_experiment(None, settings), tmp_path / "run")
    page = write_report(folder).read_text()
    assert page.count("data:image/png;base64,") == 3
    assert not re.search(r"(src|href)=[\"']?(https?:|/|\.)", page)
    for summary in summarise(folder):
        for text in cells(summary):
            assert f"<td>{text}</td>" in page
    assert "barbell:size=3" in page
    assert {path.name for path in (tmp_path / "run" / "figures").iterdir()} == {
        "network.png",
        "accuracy.png",
        "consensus.png",
    }
