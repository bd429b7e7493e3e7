"""What a device that joins may ask for: this device's parameters as they are."""

from __future__ import annotations

import torch
from torch import Tensor

from ssdfl.mesh.mesh_pb2 import Request, Response, Wait
from ssdfl.mesh.outbox import POLL_S
from ssdfl.mesh.runtime import REAL, Runtime
from ssdfl.mesh.wire import pack_row


class Shelf:
    """This device's parameters at its present step, for neighbours that join."""

    def __init__(self, runtime: Runtime = REAL) -> None:
        self._step, self._row = -1, torch.empty(0)
        self._changed = runtime.condition()

    def put(self, step: int, row: Tensor) -> None:
        """The device is at a step with these parameters, (d,)."""
        with self._changed:
            self._step, self._row = step, row
            self._changed.notify_all()

    def answer(self, request: Request) -> Response:
        """The parameters at a step or later; waits a little if the device is not there yet."""
        step = request.model.step
        with self._changed:
            self._changed.wait_for(lambda: self._step >= step, POLL_S)
            if self._step < step:
                return Response(wait=Wait())
            found, row = self._step, self._row
        return Response(parameters=pack_row(row, found))
