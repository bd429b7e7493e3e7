"""Inputs that are nearly right: small changes to bytes, text and JSON, each from its own seed."""

import json
import re
from copy import deepcopy

BYTES = [0, 1, 0x20, 0x22, 0x2C, 0x7F, 0x80, 0xFF]
TEXTS = [
    *(
        "",
        "0",
        "-1",
        "1e308",
        "-1e-308",
        "nan",
        "inf",
        "1" * 400,
        "1" * 5000,
        "9223372036854775808",
        "4294967296",
        "0.1",
    ),
    *(
        "null",
        "true",
        "[]",
        "{}",
        '"',
        "\\",
        "\0",
        "\ud7ff",
        "é",
        "…",
        "=",
        ":",
        ",",
        "+",
        "a" * 300,
        "[" * 200,
    ),
]
VALUES = [
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        2,
        1.5,
        -0.0,
        1e308,
        2**31,
        2**63,
        10**30,
        10**400,
        float("nan"),
        float("inf"),
    ),
    *("", "0", "x", "a" * 300, "é", [], [0], [[]], {}, {"a": 1}, [None], [[0, 1], [2]]),
]
NUMBER = re.compile(rb"-?\d+(\.\d+)?([eE][-+]?\d+)?")
WORD = re.compile(rb"[-\w.]+")
CELLS = (
    *b"0 1 2 3 5 0.5 -1 1e3 1e-9 1e308 nan inf a b z".split(),
    b"",
    b" 1",
    b'"a,b"',
    b"10.0.0.9:1",
)


def mutated(draw, corpus):
    """One of some texts or bytes after one to four changes.

    Args:
        draw: a `random.Random`.
        corpus: whole inputs as bytes.
    """
    content = draw.choice(corpus)
    for _ in range(draw.randint(1, 4)):
        content = draw.choice(CHANGES)(draw, content, corpus)
    return content


def _flip(draw, content, corpus):
    if not content:
        return content
    place, changed = draw.randrange(len(content)), bytearray(content)
    changed[place] ^= 1 << draw.randrange(8)
    return bytes(changed)


def _overwrite(draw, content, corpus):
    place = draw.randint(0, len(content))
    new = bytes(
        draw.choice([*BYTES, draw.randrange(256)]) for _ in range(draw.choice([1, 2, 4, 8]))
    )
    return content[:place] + new + content[place + len(new) :]


def _insert(draw, content, corpus):
    place = draw.randint(0, len(content))
    return content[:place] + draw.choice(TEXTS).encode() + content[place:]


def _number(draw, content, corpus):
    """Another number, in a text that has some."""
    found = _find(draw, NUMBER, content)
    if not found:
        return _overwrite(draw, content, corpus)
    start, stop = found.span()
    return content[:start] + draw.choice(TEXTS[:13]).encode() + content[stop:]


def _word(draw, content, corpus):
    """A word or number where another stood."""
    old, new = _find(draw, WORD, content), _find(draw, WORD, draw.choice(corpus))
    if not old or not new:
        return _overwrite(draw, content, corpus)
    return content[: old.start()] + new.group() + content[old.end() :]


def _find(draw, pattern, content):
    """A match at or after a random place; the first if there is none."""
    place = draw.randint(0, len(content))
    return pattern.search(content, place) or pattern.search(content)


def _line(draw, content, corpus):
    """A line that is not there, there twice, or where another was."""
    lines = content.split(b"\n")
    place = draw.randrange(len(lines))
    change = draw.randrange(3)
    if change == 0:
        del lines[place]
    elif change == 1:
        lines.insert(draw.randint(0, len(lines)), lines[place])
    else:
        other = draw.randrange(len(lines))
        lines[place], lines[other] = lines[other], lines[place]
    return b"\n".join(lines)


def _remove(draw, content, corpus):
    start, stop = _stretch(draw, content)
    return content[:start] + content[stop:]


def _repeat(draw, content, corpus):
    start, stop = _stretch(draw, content)
    return content[:stop] + content[start:stop] * draw.choice([1, 2, 10]) + content[stop:]


def _cut(draw, content, corpus):
    return content[: draw.randint(0, len(content))]


def _splice(draw, content, corpus):
    other = draw.choice(corpus)
    return content[: draw.randint(0, len(content))] + other[draw.randint(0, len(other)) :]


def _stretch(draw, content):
    start = draw.randint(0, len(content))
    return start, min(len(content), start + draw.choice([1, 2, 4, 16, 100]))


CHANGES = [_flip, _flip, _overwrite, _insert, _number, _remove, _repeat, _cut, _splice]
TEXT_CHANGES = [_number, _number, _word, _word, _line]


def mutated_text(draw, corpus):
    """One of some texts, with one or two numbers, words or lines changed; sometimes any bytes."""
    if draw.random() < 0.3:
        return mutated(draw, corpus)
    content = draw.choice(corpus)
    for _ in range(draw.randint(1, 2)):
        content = draw.choice(TEXT_CHANGES)(draw, content, corpus)
    return content


def mutated_csv(draw, corpus):
    """One of some tables with a few cells, rows or columns changed; sometimes any text."""
    if draw.random() < 0.3:
        return mutated_text(draw, corpus)
    rows = [line.split(b",") for line in draw.choice(corpus).rstrip(b"\n").split(b"\n")]
    for _ in range(draw.randint(1, 3)):
        draw.choice(ROW_CHANGES)(draw, rows)
    return b"\n".join(map(b",".join, rows)) + b"\n"


def _cell(draw, rows):
    row, other = draw.choice(rows), draw.choice(rows)
    row[draw.randrange(len(row))] = draw.choice([draw.choice(CELLS), draw.choice(other)])


def _row(draw, rows):
    if draw.random() < 0.5 and len(rows) > 2:
        del rows[draw.randrange(len(rows))]
    else:
        rows.insert(draw.randint(0, len(rows)), list(draw.choice(rows)))


def _column(draw, rows):
    """A column less, twice, or in another place."""
    place, keeps = draw.randrange(len(rows[0])), draw.random() < 0.5
    to = draw.randrange(len(rows[0]))
    for row in rows:
        if place < len(row) > 1:
            row.insert(to, row[place] if keeps else row.pop(place))


ROW_CHANGES = [_cell, _cell, _cell, _cell, _row, _column]


def mutated_json(draw, text):
    """JSON data with one to three values replaced, removed, or repeated under another key.

    Args:
        text: the data as a text.
    """
    data = json.loads(text)
    places = list(_places(data))
    for _ in range(draw.randint(1, 3) if places else 0):
        holder, key = draw.choice(places)
        change = draw.randrange(6)
        if not _has(holder, key):
            continue
        if change < 4:
            holder[key] = deepcopy(_value(draw, holder[key], places))
        elif change == 4:
            del holder[key]
        elif isinstance(holder, dict):
            holder[draw.choice(TEXTS)] = deepcopy(holder[key])
        else:
            holder.append(deepcopy(holder[key]))
    return data


def _has(holder, key):
    """Whether a place is still there after earlier changes."""
    return key in holder if isinstance(holder, dict) else key < len(holder)


def _value(draw, before, places):
    """Some other value: a number near a number, one from elsewhere, or any."""
    kind = draw.randrange(4)
    if kind == 0 and type(before) in (int, float):
        return before + draw.choice([-1, 1, 0.5]) if type(before) is float else before + 1
    if kind == 1:
        holder, key = draw.choice(places)
        return holder[key] if _has(holder, key) else None
    return draw.choice(VALUES)


def _places(data):
    """Every value in some data, as its holder and its key or index."""
    if isinstance(data, dict):
        items = data.items()
    elif isinstance(data, list):
        items = enumerate(data)
    else:
        return
    for key, value in items:
        yield data, key
        yield from _places(value)
