"""Asking neighbours round by round until nothing is missing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ssdfl.errors import NotYetError
from ssdfl.mesh.node import Node, StoppedError

ASK_S = 5.0
ROUND_S = 0.1


def gather(
    node: Node,
    what: str,
    missing: Callable[[], Sequence[str]],
    ask: Callable[[], None],
    timeout_s: float,
) -> None:
    """Ask again and again until nothing is missing.

    Args:
        what: is gathered, for a message.
        missing: names what there is not yet.
        ask: one round of questions to the neighbours that are there.

    Raises:
        NotYetError: some have not come in time; it names them.
        StoppedError: the device was asked to stop.
    """
    deadline = node.runtime.now() + timeout_s
    while lacking := missing():
        if node.stopped:
            raise StoppedError
        if node.runtime.now() > deadline:
            expected = f"all within {timeout_s:g} s"
            remedy = f"Start {', '.join(lacking[:5])}, and check addresses and firewalls."
            raise NotYetError(f"{what} missing", len(lacking), expected, remedy)
        ask()
        node.runtime.sleep(ROUND_S)
