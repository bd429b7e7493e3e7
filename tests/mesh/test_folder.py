"""What real devices can run."""

from types import SimpleNamespace

import pytest

from ssdfl.errors import InputError
from ssdfl.mesh.folder import check_reach
from ssdfl.mesh.transport import MAX_MESSAGE_BYTES


def job(message_bytes):
    """A job without steps, of which only the size of messages can be refused."""
    return SimpleNamespace(
        tested_models="all", message_bytes=message_bytes, steps_per_cycle=0, schedule=None
    )


def test_a_model_may_be_as_large_as_a_message_less_a_kilobyte():
    check_reach("ssdfl", job(MAX_MESSAGE_BYTES - 1024))
    with pytest.raises(InputError, match="bytes of the model"):
        check_reach("ssdfl", job(MAX_MESSAGE_BYTES - 1023))
