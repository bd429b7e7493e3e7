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
    found = list(NUMBER.finditer(content[:20_000]))
    if not found:
        return _overwrite(draw, content, corpus)
    start, stop = draw.choice(found).span()
    return content[:start] + draw.choice(TEXTS[:13]).encode() + content[stop:]


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


def mutated_json(draw, data):
    """JSON data with one to three values replaced, removed, or repeated under another key."""
    data = json.loads(json.dumps(data))
    for _ in range(draw.randint(1, 3)):
        places = list(_places(data))
        if not places:
            return data
        holder, key = draw.choice(places)
        change = draw.randrange(6)
        if change < 4:
            holder[key] = deepcopy(draw.choice(VALUES))
        elif change == 4:
            del holder[key]
        elif isinstance(holder, dict):
            holder[draw.choice(TEXTS)] = deepcopy(holder[key])
        else:
            holder.append(deepcopy(holder[key]))
    return data


def _places(data):
    items = (
        data.items()
        if isinstance(data, dict)
        else enumerate(data)
        if isinstance(data, list)
        else ()
    )
    for key, value in items:
        yield data, key
        yield from _places(value)
