"""What others can make a device write into its log."""

import logging

import pytest

from ssdfl.mesh import logs
from ssdfl.mesh.logs import MOST_ALIKE, WINDOW_S, Throttle, logging_to, one_line

log = logging.getLogger("ssdfl.mesh.tested")


def lines(folder):
    return (folder / logs.LOG).read_text().splitlines()


def test_nobody_writes_lines_of_their_own(tmp_path):
    with logging_to(tmp_path):
        log.warning(
            "%s sent %s: dropped", "b", "a\n2026-01-01 00:00:00,000 ERROR all is lost\r\x1b[31m"
        )
    (line,) = lines(tmp_path)
    assert r"a\n2026-01-01 00:00:00,000 ERROR all is lost\r\x1b[31m: dropped" in line


def test_a_line_is_cut():
    assert len(one_line("x" * 100_000)) < 2100


def test_a_flood_of_lines_is_throttled_and_says_what_was_left_out(caplog):
    now = [0.0]
    throttle = Throttle(lambda: now[0])

    def passes(text, *arguments):
        record = logging.LogRecord("ssdfl", logging.WARNING, "", 0, text, arguments, None)
        return throttle.filter(record), record.getMessage()

    passed = [passes("%s sent %s", "b", number)[0] for number in range(1000)]
    assert passed == [True] * MOST_ALIKE + [False] * (1000 - MOST_ALIKE)
    assert passes("another %s", "b")[0]  # each wording for itself
    now[0] = WINDOW_S + 0.1
    assert passes("%s sent %s", "b", 1) == (
        True,
        f"b sent 1 ({1000 - MOST_ALIKE} more like this were left out)",
    )
    now[0] = 3 * WINDOW_S
    assert passes("%s sent %s", "b", 2) == (True, "b sent 2")


def test_the_log_is_rotated(tmp_path, monkeypatch):
    monkeypatch.setattr(logs, "MOST_BYTES", 2000)
    monkeypatch.setattr(logs, "MOST_ALIKE", 10**6)
    with logging_to(tmp_path):
        for number in range(300):
            log.info("line %d", number)
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == ["device.log", "device.log.1", "device.log.2"]
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 6000
    assert lines(tmp_path)[-1].endswith("line 299")


def test_a_full_disk_costs_lines_and_nothing_else(tmp_path, monkeypatch, capsys):
    with logging_to(tmp_path):
        (handler,) = [
            one for one in logging.getLogger("ssdfl").handlers if isinstance(one, logs._Handler)
        ]

        def full(record):
            raise OSError("No space left on device")

        monkeypatch.setattr(handler, "shouldRollover", full)
        log.error("lost")
    assert capsys.readouterr().err == ""
    assert lines(tmp_path) == []


@pytest.mark.parametrize("raised", [ValueError, KeyboardInterrupt])
def test_the_log_is_closed_whatever_happens(tmp_path, raised):
    before = list(logging.getLogger("ssdfl").handlers)
    with pytest.raises(raised), logging_to(tmp_path):
        raise raised
    assert logging.getLogger("ssdfl").handlers == before
