"""Devices that differ in anything that counts have different digests."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ssdfl.mesh.digest import plan_digest

CLUSTERS = st.lists(st.lists(st.integers(0, 9), max_size=3), max_size=3)
PARTS = st.tuples(st.text(max_size=3), st.text(max_size=3), CLUSTERS, *[st.text(max_size=3)] * 2)
PLAN = ("cycles = 3\n", "{}", [[0, 1], [2]], "0.1.0", "f00d")


@given(PARTS, PARTS)
def test_digests_are_equal_only_for_equal_parts(ours, theirs):
    assert (plan_digest(*ours) == plan_digest(*theirs)) == (ours == theirs)


def test_a_change_of_any_part_changes_it():
    others = ("cycles = 4\n", '{"links": []}', [[0], [1, 2]], "0.1.1", "f00e")
    changed = [(*PLAN[:k], other, *PLAN[k + 1 :]) for k, other in enumerate(others)]
    digests = {plan_digest(*parts) for parts in (PLAN, *changed)}
    assert len(digests) == 6


def test_parts_cannot_run_into_each_other():
    alike = [("ab", "c"), ("a", "bc"), ("a\0b", "c"), ("a", "b\0c"), ('a", "network": "b', "c")]
    assert len({plan_digest(*texts, [], "1") for texts in alike}) == len(alike)
    assert plan_digest("", "", [[1, 2]], "") != plan_digest("", "", [[12]], "")
    assert plan_digest("", "", [[1], [2]], "") != plan_digest("", "", [[1, 2]], "")


def test_the_kind_of_sequence_does_not_count():
    clusters = (np.array([0, 1]), (np.int64(2),))
    assert plan_digest("cycles = 3\n", "{}", clusters, "0.1.0", "f00d") == plan_digest(*PLAN)
