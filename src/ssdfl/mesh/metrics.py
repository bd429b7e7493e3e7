"""How a device is doing, as text that Prometheus reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields


def _metric(about: str, kind: str = "gauge") -> float:
    """A field that is served, with what it is and whether it only grows."""
    found: float = field(default=float("nan"), metadata={"about": about, "kind": kind})
    return found


@dataclass(frozen=True)
class Reading:
    """What there is to see of a device just now; NaN is not served.

    Attributes:
        device: its name, a label of all others.
    """

    device: str
    step: float = _metric("Step of the schedule that the device is at")
    last_step: float = _metric("Steps that there are in all")
    cycle: float = _metric("Cycles that are done")
    score: float = _metric("Score of the last test, such as accuracy from 0 to 1")
    neighbours: float = _metric("Neighbours in the network")
    neighbours_alive: float = _metric("Neighbours that answer")
    received_messages_total: float = _metric("Messages mixed, also before a restart", "counter")
    received_bytes_total: float = _metric("Bytes of messages since this process began", "counter")
    bad_messages_total: float = _metric("Messages that were dropped as impossible", "counter")
    refused_calls_total: float = _metric("Calls of strangers that were refused", "counter")
    skipped_steps_total: float = _metric("Steps not taken, as others had gone on", "counter")
    waited_seconds_total: float = _metric("Seconds of waiting for neighbours' messages", "counter")
    done: float = _metric("1 when the device has finished")


def metrics_text(reading: Reading) -> str:
    r"""A reading as Prometheus' text format.

    Examples:
        >>> print(metrics_text(Reading("Tokyo", step=7.0)), end="")
        # HELP ssdfl_step Step of the schedule that the device is at
        # TYPE ssdfl_step gauge
        ssdfl_step{device="Tokyo"} 7
    """
    device = reading.device.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    lines = []
    for one in fields(reading)[1:]:
        value, name = getattr(reading, one.name), f"ssdfl_{one.name}"
        if value == value:  # NaN is not
            lines += [
                f"# HELP {name} {one.metadata['about']}",
                f"# TYPE {name} {one.metadata['kind']}",
            ]
            lines.append(f'{name}{{device="{device}"}} {value:.10g}')
    return "".join(f"{line}\n" for line in lines)


@contextmanager
def serving_metrics(port: int | None, read: Callable[[], Reading]) -> Iterator[None]:
    """Serve ``/metrics`` on a port of loopback for the block; nothing without a port.

    Raises:
        InputError: the port is taken.
    """
    if port is None:
        yield
        return
    from ssdfl.mesh.metrics_server import serving

    with serving(port, lambda: metrics_text(read())):
        yield
