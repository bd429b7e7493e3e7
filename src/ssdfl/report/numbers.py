"""Readable numbers: three digits, thousands separated, bytes in a suitable unit."""

from __future__ import annotations

from collections.abc import Iterable

from ssdfl.records.record import Metric


def number(value: float) -> str:
    """A number with three digits, or rounded to an integer from 100 on.

    Examples:
        >>> number(0.01234), number(20), number(1234.5)
        ('0.0123', '20', '1,234')
    """
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def data_size(num_bytes: float) -> str:
    """Bytes in the largest unit that gives at least 1.

    Examples:
        >>> data_size(40_000), data_size(9_123_000), data_size(2.5e9)
        ('40 kB', '9.12 MB', '2.5 GB')
    """
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if num_bytes >= size:
            return f"{number(num_bytes / size)} {unit}"
    return f"{number(num_bytes)} B"


def amount(value: float, metric: Metric) -> str:
    """A metric's value with its unit; bytes are shown in a suitable one.

    Examples:
        >>> from ssdfl.records import METRICS
        >>> amount(9_123_000, METRICS["sent_bytes"]), amount(0.75, METRICS["time_s"])
        ('9.12 MB', '0.75 s')
        >>> amount(12, METRICS["cycle"])
        '12'
    """
    if metric.unit == "MB":
        return data_size(value)
    return f"{number(value / metric.scale)} {metric.unit}".rstrip()


def listed(words: Iterable[str]) -> str:
    """Words joined as in a sentence.

    Examples:
        >>> listed(["cycles"]), listed(["cycles", "bytes", "seconds"])
        ('cycles', 'cycles, bytes and seconds')
    """
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last
