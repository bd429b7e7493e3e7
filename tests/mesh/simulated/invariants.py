"""What must hold in every schedule, however devices and links fail.

1. No deadlock: all honest devices take all their steps and end.
2. All honest devices have the same plan.
3. A device mixes only what neighbours sent for that very step; of a liar, only finite numbers of
   that size.
4. Steps never go backwards in a process, and nobody skips further than to the step after the one
   at which an honest device is; one that knows that it was away, two steps further.
5. From two cycles after the last fault, all honest devices mix again with all that they should,
   unless a liar keeps some of them waiting: then each is late by as long as it waits for the liar.
6. The mean of all devices moves only by training, and by exchanges of which one direction was lost,
   in steps that no device had to repeat after a crash.
"""

from __future__ import annotations

from collections import defaultdict

import torch

from mesh.simulated.faults import Plan
from mesh.simulated.world import FACTS_DIGEST, STEPS_PER_CYCLE, Taken, World
from ssdfl.mesh.device_engine import MARGIN

NOTICE_S = 6.0
"""How long devices need to notice a neighbour's return: a local step, pings that hang."""
STALLING = {"mute", "never ready"}


class BrokenError(AssertionError):
    """An invariant does not hold."""


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise BrokenError(what)


def check(world: World, plan: Plan) -> None:
    """All invariants of a schedule that has ended.

    Raises:
        BrokenError: one does not hold.
    """
    _require(set(world.honest) <= world.finished.keys(), f"unfinished: {_steps(world)}")
    formed = [world.disks[device].plan for device in world.honest]
    plans = {plan and plan.settings[FACTS_DIGEST] for plan in formed}
    _require(len(plans) == 1, f"{len(plans)} plans")
    honest = [one for one in world.taken if one.device in world.honest]
    for one in honest:
        check_heard(world, one)
    check_order(world, plan, honest)
    check_mixing(world, plan, honest)
    check_mean(world, honest)


def _steps(world: World) -> dict[str, int]:
    return {world.names[device]: world.step_of(device) for device in world.honest}


def check_heard(world: World, one: Taken) -> None:
    """Invariant 3."""
    linked = set(world.job.network.neighbours(one.device).tolist())
    for j, row in one.heard.items():
        said = f"{world.names[one.device]} mixed at step {one.step} what {world.names[j]} "
        _require(j in linked, said + "sent without a link")
        if j in world.liars:
            _require(
                bool(torch.isfinite(row).all()) and row.shape == one.own.shape, said + "made up"
            )
        else:
            _require(row.numpy().tobytes() in world.published[j, one.step], said + "never sent")


def check_order(world: World, plan: Plan, honest: list[Taken]) -> None:
    """Invariant 4; steps come in the order in which they were taken."""
    furthest = 0
    last: dict[tuple[int, int], int] = {}
    for one in honest:
        key = one.device, one.life
        before = last.get(key)
        said = f"{world.names[one.device]} went from step {before} to {one.step}"
        _require(before is None or one.step > before, said)
        skips = before is not None and one.step > before + 1
        most = furthest + 1 + (MARGIN if plan.adaptive else 1)
        _require(not skips or one.step <= most, f"{said}, beyond all others at {furthest}")
        last[key] = one.step
        furthest = max(furthest, one.step)


def check_mixing(world: World, plan: Plan, honest: list[Taken]) -> None:
    """Invariant 5."""
    if STALLING & set(plan.lies):
        return
    first = remixes_from(plan, honest)
    for one in honest:
        if one.step >= first:
            missing = one.weights.keys() - one.heard.keys() - world.liars
            names = ", ".join(world.names[j] for j in sorted(missing))
            said = f"{world.names[one.device]} did not hear {names} at step {one.step}"
            _require(not missing, f"{said}, faults ended at {plan.quiet_s:.1f} s")


def remixes_from(plan: Plan, honest: list[Taken]) -> int:
    """The step from which nobody may be missing; the first if nothing fails, as all wait there."""
    if not plan.faults:
        return 0
    reached = [one.step for one in honest if one.at_s <= plan.quiet_s + NOTICE_S]
    return max(reached, default=0) + 2 * STEPS_PER_CYCLE + 1


def check_mean(world: World, honest: list[Taken]) -> None:
    """Invariant 6; with liars there is no such sum."""
    by_step: dict[int, dict[int, list[Taken]]] = defaultdict(lambda: defaultdict(list))
    for one in honest:
        by_step[one.step][one.device].append(one)
    for step, takers in by_step.items():
        devices = range(len(world.names))
        taken_once = all(len(takers[device]) == 1 for device in devices)
        sent_once = all(len(world.published[device, step]) == 1 for device in devices)
        if taken_once and sent_once and not world.liars:
            drift = _drift({device: taken[0] for device, taken in takers.items()})
            _require(drift < 1e-4, f"the sum of all moved by {drift:.2g} at step {step}")


def _drift(taken: dict[int, Taken]) -> float:
    """How far the sum moved that neither training nor one-way exchanges explain."""
    total = torch.zeros_like(taken[0].before)
    for i, one in taken.items():
        total += one.after - one.before - one.move
        for j in one.heard:
            if i not in taken[j].heard:
                total -= one.weights[j] * (taken[j].own - one.own)
    return float(total.abs().max())
