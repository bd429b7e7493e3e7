"""Files and folders as data sets."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
import torch
from PIL import Image

from ssdfl.errors import InputError
from ssdfl.learning import as_dataset, load_dataset
from ssdfl.learning.tables import Reading, split_off, table_dataset


def frame(rows=60, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "size": rng.normal(50, 10, rows),
            "colour": rng.choice(["red", "green", "blue"], rows),
            "new": rng.random(rows) < 0.5,
            "name": [f"n{k}" for k in range(rows)],
            "user": [f"user-{k % 5}" for k in range(rows)],
            "price": rng.normal(300, 70, rows),
        }
    )


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_table_is_standardised_and_encoded_and_says_so(tmp_path, ending):
    path = tmp_path / f"shop.{ending}"
    table = frame()
    table.to_csv(path, index=False) if ending == "csv" else table.to_parquet(path)
    data = load_dataset(str(path), reading=Reading(column="user"))
    test = split_off(60, 0.2)
    assert len(data.test_targets) == 12
    assert data.train_inputs.shape == (48, 1 + 3 + 2)
    assert data.train_inputs[:, 0].mean() == pytest.approx(0, abs=1e-6)
    assert data.train_inputs[:, 0].std() == pytest.approx(1, abs=1e-6)
    colours = table["colour"].to_numpy()[~test]
    assert np.array_equal(
        data.train_inputs[:, 1:4], colours[:, None] == np.array(["blue", "green", "red"])
    )
    assert data.columns["user"].tolist() == table["user"][~test].tolist()
    price = table["price"].to_numpy()
    expected = (price[test] - price[~test].mean()) / price[~test].std()
    assert np.allclose(data.test_targets, expected, atol=1e-5)
    told = " ".join(data.notes)
    for text in (
        "deviation 1: size.",
        "colour (3), new (2).",
        "categories): name.",
        "Target price: mean 285.7",
    ):
        assert text in told
    assert data.default_loss == "mse"


def test_targets_are_classes_or_numbers_by_what_they_are():
    table = pa.table({"x": np.arange(40.0), "y": np.arange(40) % 3 + 1})
    few = table_dataset(table)
    assert (few.num_classes, sorted(set(few.train_targets))) == (3, [0, 1, 2])
    assert "3 classes, 1, 2, 3" in few.notes[-1]
    assert table_dataset(table, Reading(kind="numbers")).num_classes == 0
    many = table_dataset(pa.table({"x": np.arange(40.0), "count": np.arange(40)}))
    assert many.num_classes == 0
    assert table_dataset(pa.table({"x": np.arange(40.0), "z": ["a", "b"] * 20})).num_classes == 2
    two = table_dataset(
        pa.table({"x": np.arange(40.0), "a": np.arange(40.0), "b": -np.arange(40.0)}),
        Reading("a,b"),
    )
    assert two.train_targets.shape == (32, 2)
    labels = {"x": np.arange(40.0), "a": [0, 1] * 20, "b": [1, 1, 0, 0] * 10}
    several = table_dataset(pa.table(labels), Reading("a,b", kind="labels"))
    assert (several.default_loss, several.train_targets.shape) == ("multilabel", (32, 2))


def test_gaps_are_the_mean_and_a_split_column_is_kept_to():
    values = {
        "x": [1.0, None, 3.0, 5.0],
        "y": [1.0, 2.0, 3.0, 4.5],
        "split": ["train", "train", "train", "test"],
    }
    data = table_dataset(pa.table(values))
    assert data.train_inputs[:, 0].tolist() == [-1.0, 0.0, 1.0]
    assert data.test_inputs[:, 0].tolist() == [3.0]
    assert "x (1 missing, taken as the mean)" in data.notes[0]


@pytest.mark.parametrize(
    ("columns", "reading", "message"),
    [
        ({"x": [1.0, 2.0]}, Reading(), "a column of targets in addition to inputs"),
        ({"x": [1.0, 2.0], "y": [1.0, None]}, Reading(), "column y = 1 missing: expected a target"),
        (
            {"x": [1.0, 2.0], "y": [1.0, 2.0]},
            Reading("z"),
            "data.target = z: expected one of the columns x, y",
        ),
        ({"x": [1.0, 2.0], "y": [1.0, 2.0]}, Reading(column="u"), "data.column = u"),
        ({"x": [1.0], "y": [1.0]}, Reading(), "enough to train and to test"),
        ({"x": [1.0, 2.0], "y": [1, 2], "split": ["a", "b"]}, Reading(), "test in some rows"),
    ],
)
def test_tables_that_cannot_be_used(columns, reading, message):
    with pytest.raises(InputError, match=message):
        table_dataset(pa.table(columns), Reading(reading.target, reading.column, "numbers", 0.5))


def write_devices(folder, number, rows=30):
    folder.mkdir()
    for k in range(number):
        table = pa.table(
            {
                "x": np.full(rows + k, float(k)),
                "z": np.arange(rows + k) * 1.0,
                "y": ["a", "b"] * (rows // 2) + ["a"] * k,
            }
        )
        parquet.write_table(table, folder / f"device-{k}.parquet")


def test_one_file_per_device(tmp_path):
    write_devices(tmp_path / "devices", 4)
    data = load_dataset(str(tmp_path / "devices"))
    held = dict(zip(*np.unique(data.columns["file"], return_counts=True), strict=True))
    assert held == {"device-0": 24, "device-1": 25, "device-2": 26, "device-3": 26}
    assert len(data.test_targets) == 6 + 6 + 6 + 7
    for k in range(4):
        assert len(np.unique(data.train_inputs[data.columns["file"] == f"device-{k}"][:, 0])) == 1


def test_a_damaged_file_among_a_hundred_is_named(tmp_path):
    write_devices(tmp_path / "devices", 100, rows=4)
    damaged = tmp_path / "devices" / "device-37.parquet"
    damaged.write_bytes(damaged.read_bytes()[:150])
    with pytest.raises(InputError, match=r"device-37.parquet: expected a whole file"):
        load_dataset(str(tmp_path / "devices"))
    parquet.write_table(pa.table({"q": [1.0]}), damaged)
    with pytest.raises(InputError, match=r"device-37.parquet = q: expected the columns x, z, y"):
        load_dataset(str(tmp_path / "devices"))


def test_npz_is_never_unpickled(tmp_path):
    class Evil:
        def __reduce__(self):
            return (print, ("unpickled",))

    np.savez(tmp_path / "evil.npz", inputs=np.array([Evil()], dtype=object), targets=np.zeros(1))
    with pytest.raises(InputError, match="evil.npz: expected a whole file"):
        load_dataset(str(tmp_path / "evil.npz"))


def test_npz_of_images_tokens_and_numbers(tmp_path):
    rng = np.random.default_rng(0)
    images, labels = rng.integers(0, 255, (20, 1, 4, 4), dtype=np.uint8), np.arange(20) % 3
    np.savez(
        tmp_path / "images.npz",
        x_train=images[:15],
        y_train=labels[:15],
        x_test=images[15:],
        y_test=labels[15:],
    )
    data = load_dataset(str(tmp_path / "images.npz"))
    assert data.train_inputs.shape == (15, 1, 4, 4)
    assert np.array_equal(data.test_targets, labels[15:])
    assert np.allclose(data.encoding.normalisation.applied_to(images[:15]), data.train_inputs)
    tokens = rng.integers(0, 9, (20, 6))
    np.savez(tmp_path / "tokens.npz", inputs=tokens[:, :-1], targets=tokens[:, 1:])
    data = load_dataset(str(tmp_path / "tokens.npz"))
    assert (data.default_loss, data.train_inputs.dtype) == ("next_token", np.int64)
    np.savez(
        tmp_path / "numbers.npz", x=rng.random((20, 3)), y=rng.random(20), site=np.arange(20) % 4
    )
    data = load_dataset(str(tmp_path / "numbers.npz"), reading=Reading(column="site"))
    assert data.default_loss == "mse"
    assert set(data.columns["site"]) == {0, 1, 2, 3}
    np.savez(tmp_path / "odd.npz", first=tokens)
    with pytest.raises(InputError, match="expected inputs and targets"):
        load_dataset(str(tmp_path / "odd.npz"))


def test_an_image_folder(tmp_path):
    rng = np.random.default_rng(0)
    for part, number in (("train", 6), ("test", 2)):
        for name in ("cat", "dog"):
            (tmp_path / part / name).mkdir(parents=True)
            for k in range(number):
                pixels = rng.integers(0, 255, (5, 4, 3), dtype=np.uint8)
                Image.fromarray(pixels).save(tmp_path / part / name / f"{k}.png")
    data = load_dataset(str(tmp_path))
    assert data.train_inputs.shape == (12, 3, 5, 4)
    assert data.train_targets.tolist() == [0] * 6 + [1] * 6
    assert data.test_targets.tolist() == [0, 0, 1, 1]
    (tmp_path / "train" / "cat" / "9.png").write_bytes(b"no image")
    with pytest.raises(InputError, match=r"9.png: expected a whole file"):
        load_dataset(str(tmp_path))


def test_a_hugging_face_folder(tmp_path):
    """As `Dataset.save_to_disk` writes it: state.json beside Arrow streams."""
    (tmp_path / "dataset_dict.json").write_text(json.dumps({"splits": ["train", "test"]}))
    for split, number in (("train", 8), ("test", 4)):
        (tmp_path / split).mkdir()
        table = pa.table({"length": np.arange(number) * 1.0, "label": ["a", "b"] * (number // 2)})
        file = pa.OSFile(str(tmp_path / split / "data-0.arrow"), "wb")
        with file, pa.ipc.new_stream(file, table.schema) as stream:
            stream.write_table(table)
        state = {"_data_files": [{"filename": "data-0.arrow"}]}
        (tmp_path / split / "state.json").write_text(json.dumps(state))
    data = load_dataset(str(tmp_path))
    assert (len(data.train_targets), len(data.test_targets), data.num_classes) == (8, 4, 2)


def test_what_python_has():
    table = frame()
    assert len(as_dataset(table).test_targets) == 12
    assert len(as_dataset(pa.Table.from_pandas(table)).test_targets) == 12
    pairs = torch.utils.data.TensorDataset(torch.randn(30, 4), torch.arange(30) % 3)
    data = as_dataset(pairs)
    assert (data.train_inputs.shape, data.num_classes) == ((24, 4), 3)
    both = as_dataset((pairs, torch.utils.data.Subset(pairs, range(5))))
    assert (len(both.train_targets), len(both.test_targets)) == (30, 5)
    with pytest.raises(InputError, match="data = list"):
        as_dataset([1, 2])


def test_paths_that_hold_nothing(tmp_path):
    with pytest.raises(InputError, match="an existing file or folder"):
        load_dataset(str(tmp_path / "nothing.csv"))
    with pytest.raises(InputError, match=r"a .parquet, .csv or .npz file"):
        load_dataset(str(tmp_path))


@pytest.mark.parametrize("name", ["diabetes", "housing", "logbooks"])
def test_built_in_tasks(name):
    data, again = load_dataset(name), load_dataset(name)
    assert np.array_equal(data.train_targets, again.train_targets)
    assert data.notes
    if name == "housing":
        sizes = np.unique(data.columns["region"], return_counts=True)[1]
        assert (len(sizes), sizes.min() < 60, sizes.max() > 1200) == (20, True, True)
    if name == "logbooks":
        assert np.array_equal(data.train_inputs[:, 1:], data.train_targets[:, :-1])
        assert set(data.columns["book"]) == {
            "lighthouse",
            "bakery",
            "workshop",
            "station",
            "garden",
            "clinic",
        }
