"""Readers on files made here, in every layout; and what damaged files say."""

import gzip
import io
import pickle
import struct
import tarfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from PIL import Image

from ssdfl.errors import InputError
from ssdfl.learning import DATASETS, Dataset, load_dataset
from ssdfl.learning.formats import parse_cifar_python, read_idx

RNG = np.random.default_rng(0)


def idx_bytes(array):
    header = (
        b"\0\0\x08"
        + bytes([array.ndim])
        + b"".join(struct.pack(">I", size) for size in array.shape)
    )
    return gzip.compress(header + array.tobytes())


def write_fmnist(folder, train=60, test=20):
    folder.mkdir(parents=True, exist_ok=True)
    for part, count in (("train", train), ("t10k", test)):
        images = RNG.integers(0, 256, (count, 28, 28)).astype(np.uint8)
        labels = (np.arange(count) % 10).astype(np.uint8)
        (folder / f"{part}-images-idx3-ubyte.gz").write_bytes(idx_bytes(images))
        (folder / f"{part}-labels-idx1-ubyte.gz").write_bytes(idx_bytes(labels))
    return folder


def python2_pickle(pixels, labels):
    """A batch as CIFAR-10's authors wrote it: Python 2's protocol 2, bytes in a BINSTRING."""

    def short(text):
        return b"U" + bytes([len(text)]) + text

    ints = b"".join(b"K" + bytes([label]) for label in labels)
    array = (
        b"cnumpy.core.multiarray\n_reconstruct\n"
        + short(b"b")
        + b"T"
        + struct.pack("<i", len(pixels))
        + pixels
    )
    items = short(b"batch_label") + short(b"training batch 1 of 5")
    items += short(b"labels") + b"](" + ints + b"e" + short(b"data") + array + b"K\x05\x86"
    return b"\x80\x02}(" + items + b"u."


def cifar_batches(form, per_batch=10):
    names = [f"data_batch_{k}" for k in range(1, 6)] + ["test_batch"]
    for k, name in enumerate(names):
        images = (
            np.full((per_batch, 3, 32, 32), k, dtype=np.uint8)
            + np.arange(per_batch, dtype=np.uint8)[:, None, None, None]
        )
        labels = np.arange(per_batch) % 10
        if form == "bin":
            records = np.concatenate(
                [labels[:, None].astype(np.uint8), images.reshape(per_batch, -1)], axis=1
            )
            yield f"{name}.bin", records.tobytes()
        elif form == "py2":
            yield name, python2_pickle(images.tobytes(), labels.tolist())
        else:
            data = {b"labels": labels.tolist(), b"data": images.reshape(per_batch, -1).tobytes()}
            yield name, pickle.dumps(data, protocol=4)


def check_cifar(data):
    assert data.train_inputs.shape == (50, 3, 32, 32)
    assert data.test_inputs.shape == (10, 3, 32, 32)
    assert data.train_targets[:12].tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1]
    # Pixel values rise by one per image and by one per batch; normalising keeps the order.
    assert (np.diff(data.train_inputs[:10, 0, 0, 0]) > 0).all()
    assert data.test_inputs[0, 0, 0, 0] > data.train_inputs[0, 0, 0, 0]


def test_fmnist(tmp_path):
    write_fmnist(tmp_path / "fashion_mnist")
    data = load_dataset("fmnist", tmp_path)
    assert data.train_inputs.shape == (60, 1, 28, 28)
    assert data.test_inputs.shape == (20, 1, 28, 28)
    assert data.train_inputs.mean() == pytest.approx(0, abs=1e-5)
    assert data.train_inputs.std() == pytest.approx(1, abs=1e-5)
    assert data.train_targets[:11].tolist() == [*range(10), 0]


@pytest.mark.parametrize("form", ["bin", "py2", "py3"])
def test_cifar10_batches_in_a_folder(tmp_path, form):
    folder = tmp_path / ("cifar-10-batches-bin" if form == "bin" else "cifar-10-batches-py")
    folder.mkdir()
    for name, content in cifar_batches(form):
        (folder / name).write_bytes(content)
    check_cifar(load_dataset("cifar10", tmp_path))


@pytest.mark.parametrize(
    ("form", "archive"), [("bin", "cifar-10-binary.tar.gz"), ("py2", "cifar-10-python.tar.gz")]
)
def test_cifar10_archives(tmp_path, form, archive):
    with tarfile.open(tmp_path / archive, "w:gz") as tar:
        for name, content in [*cifar_batches(form), ("readme.html", b"<p>")]:
            info = tarfile.TarInfo(f"cifar-10-batches/{name}")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    check_cifar(load_dataset("cifar10", tmp_path))


@pytest.mark.parametrize("column", ["img", "image"])
def test_cifar10_parquet(tmp_path, column):
    def png(value):
        out = io.BytesIO()
        Image.fromarray(np.full((32, 32, 3), (value, 0, 7), dtype=np.uint8)).save(out, "PNG")
        return {"bytes": out.getvalue(), "path": None}

    for part, count in (("train", 6), ("test", 3)):
        table = pa.table({column: [png(40 * k) for k in range(count)], "label": list(range(count))})
        parquet.write_table(table, tmp_path / f"{part}-00000-of-00001.parquet")
    data = load_dataset("cifar10", tmp_path)
    assert data.train_inputs.shape == (6, 3, 32, 32)
    assert (np.diff(data.train_inputs[:, 0, 0, 0]) > 0).all()
    assert data.test_targets.tolist() == [0, 1, 2]


def test_pickles_are_never_executed():
    class Evil:
        def __reduce__(self):
            return (pytest.fail, ("the pickle was executed",))

    raw = pickle.dumps({b"labels": [], b"x": Evil()}, protocol=2)
    with pytest.raises(ValueError):
        parse_cifar_python(raw)


@pytest.mark.parametrize("cut", [10, 200])
def test_truncated_idx(tmp_path, cut):
    folder = write_fmnist(tmp_path / "fmnist")
    path = folder / "train-images-idx3-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-cut])
    with pytest.raises(InputError, match=r"train-images.*expected a whole file.*ssdfl data fetch"):
        load_dataset("fmnist", tmp_path)


def test_idx_with_too_few_bytes_or_another_type(tmp_path):
    path = tmp_path / "x.gz"
    path.write_bytes(gzip.compress(b"\0\0\x08\x01\0\0\0\x09abc"))
    with pytest.raises(InputError, match="a whole file"):
        read_idx(path)
    path.write_bytes(gzip.compress(b"\0\0\x0d\x01\0\0\0\x01abcd"))
    with pytest.raises(InputError, match="no IDX header"):
        read_idx(path)


def test_images_and_labels_must_match(tmp_path):
    folder = write_fmnist(tmp_path / "fmnist")
    (folder / "t10k-labels-idx1-ubyte.gz").write_bytes(idx_bytes(np.zeros(3, dtype=np.uint8)))
    with pytest.raises(InputError, match="expected 3 images"):
        load_dataset("fmnist", tmp_path)


def test_truncated_parquet_and_archive(tmp_path):
    for part in ("train", "test"):
        (tmp_path / f"{part}.parquet").write_bytes(b"PAR1 and then nothing")
    with pytest.raises(InputError, match="a whole file"):
        load_dataset("cifar10", tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    (other / "cifar-10-binary.tar.gz").write_bytes(gzip.compress(b"x" * 2000)[:-5])
    with pytest.raises(InputError, match="a whole file"):
        load_dataset("cifar10", other)


def test_missing_batches(tmp_path):
    for name, content in list(cifar_batches("bin"))[:3]:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match="3 training and 0 test batches"):
        load_dataset("cifar10", tmp_path)


def test_digits_are_built_in():
    data = load_dataset("digits")
    assert len(data.train_targets) + len(data.test_targets) == 1797
    assert data.num_classes == 10


def test_unknown_and_own_data_sets():
    with pytest.raises(
        InputError, match=f"data.name = mnist: expected one of {', '.join(DATASETS)}"
    ):
        load_dataset("mnist")
    assert load_dataset("helpers:tiny_data").num_classes == 4
    with pytest.raises(InputError, match="returns ssdfl.learning.Dataset"):
        load_dataset("builtins:dict")


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("train_inputs", np.zeros((4, 1, 2, 2)), "train_inputs = ndarray float64"),
        ("train_inputs", np.array(["a"] * 4), "an array of numbers"),
        ("train_inputs", np.zeros((3, 1, 2, 2), dtype=np.float32), "3 inputs, 4 targets"),
        ("train_inputs", np.full((4, 1, 2, 2), np.nan, dtype=np.float32), "NaN"),
        ("test_targets", np.array([0, 1], dtype=np.int32), "test_targets = ndarray int32"),
        ("test_targets", np.array([0, 5]), "test_targets = 5: expected labels from 0 to 1"),
        ("test_targets", np.array([0, -1]), "test_targets = -1"),
        ("test_targets", [0, 1], "test_targets = list"),
    ],
)
def test_data_sets_of_ones_own_are_checked(field, value, message):
    images, labels = np.zeros((4, 1, 2, 2), dtype=np.float32), np.array([0, 1, 0, 1])
    fields = {
        "train_inputs": images,
        "train_targets": labels,
        "test_inputs": images[:2],
        "test_targets": labels[:2],
        "num_classes": 2,
    }
    Dataset(**fields)
    with pytest.raises(InputError, match=message):
        Dataset(**(fields | {field: value}))


def idx_bomb(size_bytes):
    """A gzipped file that expands to a thousand times its size."""
    return gzip.compress(b"\0\0\x08\x01" + size_bytes.to_bytes(4, "big") + bytes(size_bytes))


def test_a_small_idx_file_that_expands_a_thousandfold_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "x.gz"
    path.write_bytes(idx_bomb(10**6))
    assert read_idx(path).shape == (10**6,)
    monkeypatch.setattr("ssdfl.claims.SMALL_BYTES", 900_000)
    with pytest.raises(InputError, match="1 MB when expanded: expected at most 0 MB in a file of"):
        read_idx(path)
    path.write_bytes(gzip.compress(b"\0\0\x08\x03" + b"\xff" * 12))
    with pytest.raises(InputError, match="when expanded"):
        read_idx(path)
    path.write_bytes(gzip.compress(b"\0\0\x08\x01\0\0\0\x03abc" + bytes(10**7)))
    with pytest.raises(InputError, match="more than the header's"):
        read_idx(path)


def write_tar(path, *members):
    with tarfile.open(path, "w:gz") as tar:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))


@pytest.mark.parametrize("name", ["data_batch_1.bin", "readme.html"])
def test_an_archive_with_members_larger_than_a_batch_is_refused(tmp_path, name):
    write_tar(tmp_path / "cifar-10-binary.tar.gz", (name, bytes(41_000_000)))
    with pytest.raises(InputError, match="a member of 41,000,000 bytes"):
        load_dataset("cifar10", tmp_path)


def test_an_archive_that_never_ends_is_read_no_further_than_cifar_reaches(tmp_path, monkeypatch):
    monkeypatch.setattr("ssdfl.learning.formats._CIFAR_BYTES", 10**6)
    write_tar(tmp_path / "cifar-10-binary.tar.gz", *[("x", bytes(400_000))] * 4)
    with pytest.raises(InputError, match=r"a member at byte 1,\d\d\d,\d\d\d"):
        load_dataset("cifar10", tmp_path)


def test_an_image_of_too_many_pixels_is_not_decoded(tmp_path):
    out = io.BytesIO()
    Image.new("1", (20_000, 20_000)).save(out, "PNG")
    assert len(out.getvalue()) < 100_000
    for part in ("train", "test"):
        table = pa.table({"img": [{"bytes": out.getvalue()}], "label": [0]})
        parquet.write_table(table, tmp_path / f"{part}.parquet")
    with pytest.raises(
        InputError, match=r"an image cannot be decoded: .*(DecompressionBomb|pixels)"
    ):
        load_dataset("cifar10", tmp_path)


@pytest.mark.parametrize("cell", [None, {"bytes": None}, {"bytes": b"nothing"}])
def test_cells_that_are_no_images_are_named(tmp_path, cell):
    kind = pa.struct([("bytes", pa.binary())])
    for part in ("train", "test"):
        table = pa.table({"img": pa.array([cell], type=kind), "label": [0]})
        parquet.write_table(table, tmp_path / f"{part}.parquet")
    with pytest.raises(InputError, match=r"train.parquet.*an image cannot be decoded"):
        load_dataset("cifar10", tmp_path)


def test_a_table_of_one_value_many_times_is_read_no_further_than_its_size_allows(
    tmp_path, monkeypatch
):
    path = tmp_path / "data.parquet"
    parquet.write_table(pa.table({"x": ["ab" * 500] * 20_000, "y": [0, 1] * 10_000}), path)
    assert path.stat().st_size < 10_000
    monkeypatch.setattr("ssdfl.claims.SMALL_BYTES", 10**6)
    with pytest.raises(InputError, match=r"when expanded: expected at most 1 MB"):
        load_dataset(str(path))
