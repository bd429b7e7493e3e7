"""The figure of what devices hold."""

import numpy as np
import pytest

from ssdfl.report import plot_holdings

SIZES = np.array([3, 1, 2])
LABELS = np.array([[3, 0], [0, 1], [1, 1]])


def heights(axes):
    return [bar.get_height() for bar in axes.patches]


def test_sizes_are_above_labels():
    figure = plot_holdings(["a", "b", "c"], SIZES, LABELS, "who has what")
    sizes, labels, _ = figure.axes
    assert (sizes.get_title(), sizes.get_ylabel(), heights(sizes)) == (
        "who has what",
        "samples",
        [3, 1, 2],
    )
    assert labels.images[0].get_array().tolist() == LABELS.T.tolist()
    assert [name.get_text() for name in labels.get_xticklabels()] == ["a", "b", "c"]


def test_without_classes_there_are_sizes_only():
    (sizes,) = plot_holdings(["a", "b", "c"], SIZES, None, "").axes
    assert heights(sizes) == [3, 1, 2]
    assert [name.get_text() for name in sizes.get_xticklabels()] == ["a", "b", "c"]


@pytest.mark.parametrize(("number", "width"), [(1, 6.4), (29, 6.4), (50, 11.0), (1000, 16.0)])
def test_figures_grow_with_the_number_of_devices_up_to_a_page(number, width):
    figure = plot_holdings(["a"] * number, np.ones(number, dtype=np.int64), None, "")
    assert figure.get_size_inches().tolist() == pytest.approx([width, 4.8])
