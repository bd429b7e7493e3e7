"""What `ssdfl bounds` says of a curve."""

import math

import pytest

from ssdfl.cli.bounds import _least


@pytest.mark.parametrize(
    ("bounds", "said"),
    [
        ([1.0, 2.0, 3.0], "1"),
        ([3.0, 2.0, 1.0], "3"),
        ([math.inf, 1.0, 1.0], "2"),
        ([math.inf, math.inf], "says nothing"),
    ],
)
def test_the_number_of_clusters_with_the_least_bound(bounds, said):
    assert _least(bounds) == said
