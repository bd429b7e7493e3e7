import numpy as np
import pytest

from ssdfl.clusters import Device, read_devices, with_device_costs
from ssdfl.errors import InputError
from ssdfl.graph import make_network

WHOLE = "device,label_0,label_1,rho,mu\nb,1,2,0.8,\na,3,0,,0.1\n"


def test_descriptors_come_in_the_networks_order(tmp_path):
    (tmp_path / "d.csv").write_text(WHOLE)
    a, b = read_devices(tmp_path / "d.csv", ["a", "b"])
    assert (a.kind, b.kind) == ("proximal", "momentum")
    assert np.array_equal(a.labels, [3, 0])
    assert b.rho == 0.8


def test_costs_of_devices_in_units(tmp_path):
    (tmp_path / "d.csv").write_text("device,label_0,uplink_Mbps,compute_ms\nb,1,8,\na,1,,20\n")
    network = make_network(2, [(0, 1)], names=["a", "b"], compute_s=[1.0, 2.0])
    found = with_device_costs(network, tmp_path / "d.csv")
    assert len(read_devices(tmp_path / "d.csv", ["a", "b"])) == 2
    assert found.uplink_Bps.tolist() == [np.inf, 1e6]
    assert found.compute_s.tolist() == [0.02, 2.0]
    assert not network.is_shared
    (tmp_path / "d.csv").write_text("device,label_0,uplink_Mbps\nb,1,0\na,1,\n")
    with pytest.raises(
        InputError, match=r"uplink_Bps\[1\] = 0.0: expected bytes per second above 0"
    ):
        with_device_costs(network, tmp_path / "d.csv")


def test_without_labels_devices_hold_what_they_held(tmp_path):
    (tmp_path / "d.csv").write_text("device,uplink_Mbps\nb,8\na,\n")
    alike = read_devices(tmp_path / "d.csv", ["a", "b"])
    assert alike[0] is alike[1]
    known = [Device(np.array([3.0, 0.0])), Device(np.array([0.0, 1.0]), rho=0.5)]
    assert read_devices(tmp_path / "d.csv", ["a", "b"], known) == tuple(known)
    (tmp_path / "d.csv").write_text("device,rho\nb,0.8\na,\n")
    a, b = read_devices(tmp_path / "d.csv", ["a", "b"], known)
    assert (a.rho, b.rho, b.labels.tolist()) == (0.0, 0.8, [0.0, 1.0])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("device,label_0\na,1\n", "device = b: expected a line for each device"),
        ("device,label_0\na,1\nb,1\na,2\n", "line 4: device = a: expected each device once"),
        ("device,label_0\na,1\nb,1\nc,1\n", "line 4: device = c: expected a device of the network"),
        ("device,label_0\na,many\nb,1\n", "line 2: label_0 = many: expected a number"),
        ("device,label_0\na,-1\nb,1\n", "line 2: label counts"),
        ("device,label_0\na,1e300\nb,1\n", "line 2: label counts"),
        ("device,label_0,Rho\na,1,0\nb,1,0\n", "header of"),
        ("device,label_0,label_0\na,1,0\nb,1,0\n", "header of"),
        ("device,label_0,rho\na,1,nan\nb,1,0\n", "rho = nan"),
        ("name,label_0\na,1\n", "header of"),
        ("device\na\nb\n", "header of"),
        ("", "header of"),
        (None, "expected a CSV file"),
    ],
)
def test_bad_device_files(tmp_path, content, message):
    if content is not None:
        (tmp_path / "d.csv").write_text(content)
    with pytest.raises(InputError, match=message):
        read_devices(tmp_path / "d.csv", ["a", "b"])


def test_a_data_frame_is_as_good_as_the_file(tmp_path):
    pandas = pytest.importorskip("pandas")
    (tmp_path / "d.csv").write_text(WHOLE)
    frame = pandas.read_csv(tmp_path / "d.csv")
    for ours, theirs in zip(
        read_devices(frame, ["a", "b"]),
        read_devices(str(tmp_path / "d.csv"), ["a", "b"]),
        strict=True,
    ):
        assert (ours.rho, ours.mu, ours.labels.tolist()) == (
            theirs.rho,
            theirs.mu,
            theirs.labels.tolist(),
        )
    with pytest.raises(
        InputError, match="data frame row 1: device = a: expected a device of the network"
    ):
        read_devices(frame, ["b", "c"])
