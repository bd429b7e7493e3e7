"""How a device notices that it has been away, on a clock of the test's own."""

from ssdfl.mesh.absence import AWAY_S, Absence
from ssdfl.mesh.runtime import Runtime


class Stopped(Runtime):
    """A clock that the test sets, and no threads."""

    def __init__(self):
        self.time_s, self.started = 100.0, []

    def now(self):
        return self.time_s

    def start(self, task, name):
        self.started.append(name)


def test_a_pause_counts_only_if_it_is_long():
    runtime = Stopped()
    absence = Absence(watched=True, runtime=runtime)
    absence.watch()
    runtime.time_s += AWAY_S
    assert not absence.check()
    runtime.time_s += 0.01
    assert absence.check()
    runtime.time_s -= 0.01
    assert absence.check()
    absence.over()
    assert not absence.check()


def test_a_device_that_starts_again_has_been_away():
    absence = Absence(watched=True, runtime=Stopped())
    absence.begin()
    assert absence.check()


def test_one_pulse_is_enough():
    runtime = Stopped()
    absence = Absence(watched=True, runtime=runtime)
    absence.watch()
    absence.watch()
    assert runtime.started == ["pulse"]


def test_a_device_that_waits_strictly_never_looks():
    runtime = Stopped()
    absence = Absence(watched=False, runtime=runtime)
    absence.begin()
    absence.watch()
    runtime.time_s += 1000
    assert not absence.check()
    assert not runtime.started
