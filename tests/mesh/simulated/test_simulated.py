"""A few schedules of faults, those that once failed, and whether a broken mesh would be noticed."""

import logging
import random
from pathlib import Path

import pytest

from mesh.simulated import run
from mesh.simulated.faults import FAULTS, Fault, draw, make_world
from mesh.simulated.faults import Plan as Schedule
from mesh.simulated.invariants import BrokenError, check
from mesh.simulated.scheduler import Host, Scheduler, SimulatedRuntime, StuckError
from mesh.simulated.world import FACTS_DIGEST, ToyEngine, simulated
from ssdfl.clusters import Plan
from ssdfl.mesh import node, outbox
from ssdfl.mesh.mesh_pb2 import Response, Wait

HERE = Path(__file__).parent
SCHEDULES = 48
ONCE_FAILED = {
    "a device back at step 0 waited for neighbours that had finished, and gave up": Schedule(
        number=26,
        method="ssdfl+atc",
        spec="path:n=4",
        patience_s=2.0,
        compute_s=(0.1, 0.1, 0.1, 0.4),
        slowest_message_s=0.01,
        starts_s=(0.0, 0.0, 0.0, 0.0),
        faults=(Fault("crash", 3, 2, 1.0, 12.0),),
        lies=(),
    ),
    "a slower device was waited for ever less after a fault, and not heard again": Schedule(
        number=3296,
        method="ssdfl+atc",
        spec="path:n=3",
        patience_s=2.0,
        compute_s=(0.3102929324777437, 0.5806882941079898, 0.3169115941532409),
        slowest_message_s=0.05,
        starts_s=(1.080751534854974, 0.9662250811328343, 0.22367821461874748),
        faults=(
            Fault("duplicates", 1, 2, 1.3545573857229285, 3.7293348862400175),
            Fault("cut off", 0, 1, 2.3402561871981518, 1.4912544795833744),
        ),
        lies=(),
    ),
}
"""Written out, so that drawing other schedules does not change them."""


@pytest.fixture(autouse=True)
def _quiet(caplog):
    caplog.set_level(logging.CRITICAL, "ssdfl")


@pytest.mark.parametrize("first", range(0, SCHEDULES, 24))
def test_invariants_hold_whatever_fails(first):
    numbers = range(10**6 + first, 10**6 + first + 24)
    assert not [
        (number, failure) for number in numbers if (failure := run.run_schedule(number).failure)
    ]


def test_they_hold_where_devices_go_on_at_once_without_silent_neighbours():
    numbers = range(2 * 10**6, 2 * 10**6 + 16)
    outcomes = [run.run_schedule(number, adaptive=True) for number in numbers]
    assert not [(one.plan.number, one.failure) for one in outcomes if one.failure]


@pytest.mark.parametrize("what", ONCE_FAILED)
def test_what_once_failed_no_longer_does(what):
    assert run.run_plan(ONCE_FAILED[what]).failure == ""


def trace(number):
    """Everything that happened in a schedule."""
    world = make_world(draw(number))
    with simulated(world):
        world.scheduler.run(run.LONGEST_S)
    return [
        (one.device, one.step, one.at_s, one.life, one.after.tolist(), sorted(one.heard))
        for one in world.taken
    ]


def test_a_schedule_is_replayed_exactly():
    crashing = next(n for n in range(100) if {"crash"} & {fault.kind for fault in draw(n).faults})
    assert trace(crashing) == trace(crashing)
    assert trace(crashing) != trace(crashing + 1)


def test_all_kinds_of_faults_and_lies_are_drawn():
    plans = [draw(number) for number in range(300)]
    assert {fault.kind for plan in plans for fault in plan.faults} == set(FAULTS)
    assert 0.2 < sum(bool(plan.lies) for plan in plans) / len(plans) < 0.3


def faultless():
    return next(plan for plan in map(draw, range(100)) if not plan.faults and not plan.lies)


def broken(monkeypatch, place, name, value):
    """What is said of a schedule without faults when something of the mesh is broken."""
    monkeypatch.setattr(place, name, value)
    plan = faultless()
    world = make_world(plan)
    with simulated(world):
        world.scheduler.run(run.LONGEST_S)
        with pytest.raises(BrokenError) as caught:
            check(world, plan)
    return str(caught.value)


def test_a_message_that_nobody_sent_is_noticed(monkeypatch):
    taken = node.Node._taken
    altered = lambda *arguments: taken(*arguments) + 1  # noqa: E731
    assert "never sent" in broken(monkeypatch, node.Node, "_taken", altered)


def test_a_link_that_nobody_uses_is_noticed(monkeypatch):
    assert "did not hear" in broken(monkeypatch, node.Node, "_pull", lambda *_: None)


def test_a_mean_that_moves_by_itself_is_noticed(monkeypatch):
    heard = ToyEngine._heard

    def twice_its_own_weight(self, own_weight, weights, pulls, own):
        return heard(self, 2 * own_weight, weights, pulls, own)

    assert "the sum of all moved" in broken(monkeypatch, ToyEngine, "_heard", twice_its_own_weight)


def test_plans_that_differ_are_noticed():
    plan = faultless()
    world = make_world(plan)
    with simulated(world):
        world.scheduler.run(run.LONGEST_S)
        world.disks[1].plan = Plan(((0,),), "toy", settings={FACTS_DIGEST: "another"})
        with pytest.raises(BrokenError, match="2 plans"):
            check(world, plan)


def test_a_step_back_is_noticed(monkeypatch):
    plan = faultless()
    world = make_world(plan)
    with simulated(world):
        world.scheduler.run(run.LONGEST_S)
    world.taken.append(world.taken[-4])
    with pytest.raises(BrokenError, match="went from step"):
        check(world, plan)


def test_a_mesh_that_never_gets_on_is_noticed(monkeypatch):
    """Nobody ever has a message, and nobody gives up."""
    monkeypatch.setattr(outbox.Outbox, "answer", lambda *_: Response(wait=Wait()))
    monkeypatch.setattr(node.Node, "_patience", lambda *_: 1e9)
    monkeypatch.setattr(run, "LONGEST_S", 20.0)
    number = next(n for n in range(100) if draw(n) == faultless())
    assert "unfinished" in run.run_schedule(number).failure


def test_tasks_that_wait_for_each_other_are_noticed():
    scheduler, host = Scheduler(0), Host("a")
    runtime = SimulatedRuntime(scheduler, host)
    one, other = runtime.event(), runtime.event()

    def wait(first, then):
        first.wait()
        then.set()

    for pair in ((one, other), (other, one)):
        runtime.start(lambda pair=pair: wait(*pair), "waits")
    with pytest.raises(StuckError):
        scheduler.run(None)
    scheduler.close([host])
    assert not host.tasks


def test_time_passes_only_in_waits():
    scheduler, host = Scheduler(0), Host("a")
    runtime = SimulatedRuntime(scheduler, host)
    seen = []

    def sleep():
        runtime.sleep(3.5)
        seen.append(runtime.now())
        scheduler.finish()

    runtime.start(sleep, "sleeps")
    scheduler.run(10)
    assert seen == [3.5]


def test_a_frozen_process_does_nothing_and_a_dead_one_never_again():
    scheduler, frozen, dead = Scheduler(0), Host("a"), Host("b")
    seen = []
    for host in (frozen, dead):
        runtime = SimulatedRuntime(scheduler, host)
        runtime.start(
            lambda runtime=runtime: (runtime.sleep(1), seen.append(runtime.now())), "sleeps"
        )
    scheduler.after(0.5, lambda: setattr(frozen, "frozen_until", 4.0))
    scheduler.after(0.5, lambda: scheduler.kill(dead))
    scheduler.run(10)
    assert seen == [4.0]


def test_a_link_that_is_cut_one_way_works_the_other_way():
    world = make_world(faultless())
    arrived = []
    with simulated(world):
        FAULTS["one way"](world, Fault("one way", 0, 1, 0.0, 5.0))
        for ends in (("a", "b"), ("b", "a")):
            world.network.send(*ends, lambda ends=ends: arrived.append(ends))
        world.scheduler.after(
            6.0, lambda: world.network.send("a", "b", lambda: arrived.append("later"))
        )
        world.scheduler.run(7.0)
    assert arrived == [("b", "a"), "later"]


def test_the_record_has_all_kinds_and_no_failure(tmp_path, capsys):
    rows = run.read(HERE / "record.csv")
    assert [row["what"] for row in rows] == ["all", "none", *FAULTS, "liar"]
    assert {row["failures"] for row in rows} == {"0"}
    run.show(HERE / "record.csv")
    assert f"| all | {int(rows[0]['schedules']):,} |" in capsys.readouterr().out
    sample = run.run_schedule(random.Random(1).randrange(1000))
    for _ in range(2):
        run.add(tmp_path / "counts.csv", [sample])
    total = run.read(tmp_path / "counts.csv")[0]
    assert (total["schedules"], total["events"]) == ("2", str(2 * sample.events))
