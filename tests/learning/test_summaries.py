"""Summaries of parts are those of the whole, and data are encoded by them."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssdfl.errors import InputError
from ssdfl.learning.readers import arrays_dataset
from ssdfl.learning.summaries import (
    CATEGORY,
    NUMBER,
    ColumnSummary,
    Summary,
    merged,
    read_summary,
    summarised_numbers,
)
from ssdfl.learning.tables import Reading, table_dataset

numbers = st.lists(st.floats(-1e6, 1e6), min_size=0, max_size=20)


def of_numbers(values):
    return Summary(
        (
            ColumnSummary(
                "x", NUMBER, len(values), **summarised_numbers(np.array(values, dtype=float))
            ),
        ),
        (),
    )


@given(st.lists(numbers, min_size=1, max_size=6))
def test_parts_merge_to_the_mean_and_deviation_of_all(parts):
    column = merged(map(of_numbers, parts)).inputs[0]
    everything = np.concatenate([np.array(part, dtype=float) for part in parts])
    assert column.count == column.rows == len(everything)
    if len(everything):
        scale = max(1.0, np.abs(everything).max())
        assert column.normalisation.mean == pytest.approx(everything.mean(), abs=1e-9 * scale)
        deviation = everything.std() if everything.std() > 1e-6 * scale else None
        if deviation is not None:
            assert column.normalisation.deviation == pytest.approx(deviation, rel=1e-6)


def test_a_summary_is_a_file_and_back(tmp_path):
    table = pa.table({"x": [1.0, 2.0, 3.0, 4.0], "c": ["b", "a", "b", "a"], "y": [1, 2, 1, 2]})
    summary = table_dataset(table, Reading(test_share=0.5)).summary
    (tmp_path / "one.json").write_text(summary.to_json())
    assert read_summary(tmp_path / "one.json") == summary


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"version": 2}', '{"version": 1, "inputs": [{"name": "x"}], "targets": []}',
     '{"version": 1, "targets": [], "inputs": '
     '[{"name": "x", "kind": "number", "rows": 1, "spread": -1, "values": []}]}'],
)  # fmt: skip
def test_a_file_that_is_none_is_refused(text, tmp_path):
    (tmp_path / "bad.json").write_text(text)
    with pytest.raises(
        InputError, match=r"data.encoding = .*bad.json: expected a file that ssdfl data"
    ):
        read_summary(tmp_path / "bad.json")


def test_columns_that_differ_are_refused():
    numbers_, texts = of_numbers([1.0]), Summary((ColumnSummary("x", CATEGORY, 1),), ())
    with pytest.raises(InputError, match="column x = number and category"):
        merged([numbers_, texts])
    with pytest.raises(InputError, match="columns"):
        merged([numbers_, Summary((), ())])


def test_a_part_is_encoded_as_in_the_whole():
    rng = np.random.default_rng(0)
    whole = pa.table(
        {
            "x": rng.normal(5, 2, 40),
            "colour": np.repeat(["red", "blue"], 20),
            "kind": np.repeat([3, 1, 2, 1], 10),
            "split": ["train", "test"] * 20,
        }
    )
    everything = table_dataset(whole)
    own = table_dataset(whole.slice(0, 20), Reading(known=everything.summary))
    assert np.array_equal(own.train_inputs, everything.train_inputs[:10])
    assert np.array_equal(own.test_targets, everything.test_targets[:10])
    assert own.num_classes == 3
    assert own.notes == everything.notes


def test_a_class_that_nobody_told_of_is_named():
    table = pa.table({"x": np.arange(10.0), "y": ["a", "b"] * 5})
    known = table_dataset(table).summary
    other = pa.table({"x": np.arange(10.0), "y": ["a", "z"] * 5})
    with pytest.raises(InputError, match="column y = z: expected one of the classes a, b"):
        table_dataset(other, Reading(known=known))


def test_arrays_are_encoded_by_what_is_known():
    images = np.arange(2 * 8 * 3 * 4 * 4, dtype=np.float32).reshape(16, 3, 4, 4)
    labels = np.arange(16) % 5
    whole = arrays_dataset(images, labels, test=np.arange(16) >= 12)
    part = arrays_dataset(
        images[:4], labels[:4], Reading(known=whole.summary), test=np.arange(4) == 3
    )
    assert part.num_classes == 5
    assert np.array_equal(part.train_inputs, whole.train_inputs[:3])
    assert part.encoding.normalisation.mean.shape == (3, 1, 1)
