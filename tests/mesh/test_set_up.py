"""What a device checks before it talks to anyone."""

from own_data_help import own_settings, write_files
from ssdfl.mesh.folder import init_mesh
from ssdfl.mesh.member import Member
from ssdfl.mesh.set_up import largest_message_bytes
from ssdfl.mesh.transport import MAX_MESSAGE_BYTES
from ssdfl.records import load_experiment


def member_of(experiment, mesh):
    folders = init_mesh(experiment, mesh, method="ssdfl", seed=0, certificates=False)
    return Member.of_folder(folders[0])


def test_messages_have_room_for_four_vectors_and_all_facts_and_little_more(tmp_path):
    settings = ["network.spec=ring:n=4", "data.name=helpers:tiny_data", "model.name=logreg"]
    member = member_of(load_experiment(None, settings), tmp_path / "mesh")
    member.draw()
    needed = 4 * 8 * member.task.num_parameters + 4096 * (4 + 4)
    assert needed < largest_message_bytes(member) < needed + MAX_MESSAGE_BYTES / 8


def test_devices_that_do_not_know_their_model_yet_take_any_message(tmp_path):
    files = write_files(tmp_path / "files")
    member = member_of(own_settings(tmp_path, f"data.name={files}"), tmp_path / "mesh")
    assert largest_message_bytes(member) == MAX_MESSAGE_BYTES
