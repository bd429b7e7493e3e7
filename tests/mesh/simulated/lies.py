"""What a device with a valid certificate may answer instead of the truth."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from mesh.simulated.network import NO_ANSWER
from ssdfl.mesh.mesh_pb2 import Absent, Facts, Parameters, Request, Response, Wait, Witness
from ssdfl.mesh.transport import Answer


@dataclass
class Liar:
    """Changes a device's answers, each with some probability."""

    lies: tuple[str, ...]
    seed: int
    last_step: int
    often: float = 0.5
    source: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.source = random.Random(self.seed)

    def answer(self, request: Request, honest: Answer) -> Answer | None:
        """What it says instead; None is silence."""
        response = Response.FromString(
            honest if isinstance(honest, bytes) else honest.SerializeToString()
        )
        answer: Answer | None = response
        for lie in self.lies:
            if self.source.random() < self.often and isinstance(answer, Response):
                answer = LIES[lie](self, request, answer)
        return answer


def _far_ahead(liar: Liar, request: Request, response: Response) -> Answer:
    """It is about to finish, it says."""
    if response.HasField("status"):
        response.status.step = response.status.first_step = liar.last_step - 1
    return response


def _impossible(liar: Liar, request: Request, response: Response) -> Answer:
    """It is past the last step, it says."""
    if response.HasField("status"):
        response.status.step = 2**62
    return response


def _done(liar: Liar, request: Request, response: Response) -> Answer:
    if response.HasField("status"):
        response.status.done = True
    return response


def _other_plan(liar: Liar, request: Request, response: Response) -> Answer:
    if response.HasField("status"):
        response.status.plan_digest = "another"
    return response


def _forged(liar: Liar, request: Request, response: Response) -> Answer:
    """All others are far ahead, it says, and signs for them with nothing."""
    if response.HasField("status"):
        plan = response.status.plan_digest
        for name in "bcd":
            forged = Witness(
                device=name, step=liar.last_step, plan_digest=plan, certificate=name.encode()
            )
            response.status.witnesses.append(forged)
    return response


def _no_numbers(liar: Liar, request: Request, response: Response) -> Answer:
    if response.HasField("parameters"):
        count = response.parameters.count
        response.parameters.data = np.full(count, math.nan, dtype="<f4").tobytes()
    return response


def _other_step(liar: Liar, request: Request, response: Response) -> Answer:
    if response.HasField("parameters"):
        response.parameters.step += 1
    return response


def _other_size(liar: Liar, request: Request, response: Response) -> Answer:
    if request.HasField("pull"):
        data = np.zeros(5, dtype="<f4").tobytes()
        return Response(
            parameters=Parameters(step=request.pull.step, dtype="float32", count=5, data=data)
        )
    return response


def _garbage(liar: Liar, request: Request, response: Response) -> Answer:
    return NO_ANSWER if request.HasField("pull") else response


def _never_ready(liar: Liar, request: Request, response: Response) -> Answer:
    return Response(wait=Wait()) if request.HasField("pull") else response


def _absent(liar: Liar, request: Request, response: Response) -> Answer:
    return Response(absent=Absent()) if request.HasField("pull") else response


def _finite(liar: Liar, request: Request, response: Response) -> Answer:
    """Numbers that look right and are not."""
    if response.HasField("parameters"):
        count = response.parameters.count
        response.parameters.data = np.full(count, 3.0, dtype="<f4").tobytes()
    return response


def _mute(liar: Liar, request: Request, response: Response) -> Answer | None:
    """It answers pings only."""
    return None if request.HasField("pull") else response


def _forged_facts(liar: Liar, request: Request, response: Response) -> Answer:
    """Others are different from what they have signed, it says."""
    if response.HasField("facts"):
        for signed in response.facts.facts:
            signed.fact += b"\x08"
    return response


def _withheld_facts(liar: Liar, request: Request, response: Response) -> Answer:
    """It passes on half of what it knows."""
    if response.HasField("facts"):
        kept = list(response.facts.facts)[1::2]
        changed = Facts(facts=kept, digest=response.facts.digest, final=response.facts.final)
        return Response(facts=changed)
    return response


LIES: dict[str, Callable[[Liar, Request, Response], Answer | None]] = {
    "far ahead": _far_ahead,
    "impossible step": _impossible,
    "done": _done,
    "other plan": _other_plan,
    "forged steps": _forged,
    "no numbers": _no_numbers,
    "other step": _other_step,
    "other size": _other_size,
    "garbage": _garbage,
    "never ready": _never_ready,
    "absent": _absent,
    "finite": _finite,
    "mute": _mute,
    "forged facts": _forged_facts,
    "withheld facts": _withheld_facts,
}
