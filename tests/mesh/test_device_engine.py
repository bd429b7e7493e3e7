"""The engine of one device."""

import torch

from helpers import tiny_job
from ssdfl.engine.state import initial_state
from ssdfl.mesh.device_engine import initial_device_state


def test_a_device_begins_with_its_own_row_at_no_time_and_has_sent_nothing():
    job = tiny_job(spec="ring:n=4")
    everyone, state = initial_state(job), initial_device_state(job, 2)
    assert torch.equal(state.X, everyone.X[[2]])
    assert (state.step, state.real_s, state.transmissions) == (0, 0.0, 0)
