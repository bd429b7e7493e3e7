"""A device that joins takes the parameters of its neighbours, as of a step that they come to."""

from __future__ import annotations

import logging
import statistics
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import replace

import numpy as np
from torch import Tensor

from ssdfl.engine import Job, State
from ssdfl.engine.state import RULE, memory_name
from ssdfl.mesh.device_engine import initial_device_state
from ssdfl.mesh.mesh_pb2 import ModelRequest, Request
from ssdfl.mesh.node import Node, StoppedError
from ssdfl.mesh.outbox import POLL_S
from ssdfl.mesh.transport import UnreachableError
from ssdfl.mesh.wire import BadMessageError, unpack_row
from ssdfl.methods.rules.robust import median

GRACE_S = 0.2
"""How long to wait for other neighbours' parameters once one has come."""
RETRY_S = 0.2
PROOF_S = 3.0
"""How long to wait for what others have signed: some pings."""

log = logging.getLogger(__name__)


def usual_step(node: Node, timeout_s: float) -> int:
    """The step that the median neighbour says it is at, once there is one."""
    neighbours = node.neighbours
    neighbours.wait(lambda: bool(neighbours.alive), timeout_s)
    steps = [neighbours[name].step for name in neighbours.alive]
    return statistics.median_low(steps or [0])


def entry_step(node: Node, first: int) -> int:
    """The step to join at: the first of an edition, or where others are if that is proven.

    Args:
        first: the first step of the edition.
    """
    ahead = [name for name in node.neighbours.alive if node.neighbours[name].step > first]
    if node.evidence is None or not ahead:
        return first
    evidence = node.evidence
    node.neighbours.wait(lambda: evidence.reached() > first, PROOF_S)
    return max(first, evidence.reached())


def joined_state(job: Job, node: Node, index: int, step: int) -> State:
    """The state of a device that joins at a step, with parameters from its neighbours.

    It takes the median of its neighbours' parameters, number by number. One liar among three
    neighbours cannot choose it.

    Raises:
        StoppedError: the device was asked to stop.
    """
    start = initial_device_state(job, index)
    while not node.stopped:
        rows = _models(node, step, start.X[0])
        if rows:
            row = median(rows)
            log.info("joining at step %d with the parameters of %d neighbours", step, len(rows))
            return renewed(replace(start, step=step, X=row[None].to(start.X)), job)
        node.runtime.sleep(RETRY_S)
    raise StoppedError


def _models(node: Node, step: int, like: Tensor) -> list[Tensor]:
    """The parameters of the neighbours that are at a step, or come to it soon."""
    names = node.neighbours.alive
    if not names:
        return []
    pool = node.runtime.pool(len(names), "model")
    try:
        asked = [pool.submit(_model, node, name, step, like) for name in names]
        return _first_answers(asked)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _first_answers(asked: Sequence[Future[Tensor | None]]) -> list[Tensor]:
    """What comes until shortly after the first that is of use."""
    waiting = set(asked)
    while waiting and not _useful(asked):
        _, waiting = wait(waiting, return_when=FIRST_COMPLETED)
    wait(waiting, GRACE_S)
    return _useful(asked)


def _useful(asked: Sequence[Future[Tensor | None]]) -> list[Tensor]:
    """What has come so far and is of use."""
    found = [one.result() for one in asked if one.done()]
    return [row for row in found if row is not None]


def _model(node: Node, name: str, step: int, like: Tensor) -> Tensor | None:
    """A neighbour's parameters; None if it has none for us."""
    request = Request(model=ModelRequest(step=step))
    try:
        answer = node.transport.ask(name, request, POLL_S + 4, lambda: not node.stopped)
        if answer.WhichOneof("kind") != "parameters":
            return None
        return unpack_row(answer.parameters, like)
    except UnreachableError:
        return None
    except BadMessageError as error:
        node.bad_messages[name] += 1
        log.warning("%s sent %s: dropped", name, error)
        return None


def renewed(state: State, job: Job) -> State:
    """A device's state after a change of the network: every rule's memory starts again."""
    num_devices = job.network.num_devices
    kept = {memory_name(RULE, name): rows for name, rows in job.rule.init(state.X).items()}
    return replace(
        state,
        memory={**state.memory, **kept},
        trained=np.zeros(num_devices, dtype=bool),
        ready_s=np.full(num_devices, state.ready_s.max()),
    )
