"""Changes inside formats with checksums or layers, written so that only the change can be refused.

Bytes changed at random in a zip, a tar or a checkpoint are refused for the checksum, and no later
code sees them.
"""

import io
import zipfile
from hashlib import sha256

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

from fuzz.mutations import TEXTS, VALUES, mutated

NUMBERS = [0.0, 1.0, -1.0, 0.5, 2.0, 1e-300, 1e308, float("nan"), float("inf"), 3.0]
TYPES = ["f4", "f8", "f2", "i8", "u1", "?", ">f8", "c16", "U3", "M8[s]"]
CELLS = [None, 0, 1, -1, 2.5, float("nan"), float("inf"), 2**62, "", "a", "x" * 50, True, b"\0", []]


def mutated_npz(draw, corpus):
    """A zip of arrays, one of which has other values, another type, shape, name or header."""
    arrays = dict(draw.choice(corpus))
    contents = {}
    changed = draw.choice(sorted(arrays))
    for name, array in arrays.items():
        contents[name] = npy(_other_array(draw, array) if name == changed else array)
    kind = draw.randrange(8)
    if kind == 0:
        contents[changed] = mutated(draw, [contents[changed]])
    elif kind == 1:
        contents[changed] = _other_header(draw, contents[changed])
    elif kind == 2:
        contents[draw.choice(["x", "y", "adjacency", "é", ""])] = contents.pop(changed)
    return zipped({f"{name}.npy": content for name, content in contents.items()})


def mutated_npy(draw, corpus):
    """An array with other values, another type, shape or header."""
    content = npy(_other_array(draw, draw.choice(corpus)))
    return content if draw.random() < 0.7 else _other_header(draw, content)


def npy(array):
    """An array as a file."""
    out = io.BytesIO()
    np.lib.format.write_array(out, array, version=(1, 0), allow_pickle=False)
    return out.getvalue()


def zipped(contents):
    """A zip of files whose checksums are right."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in contents.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return out.getvalue()


def _other_header(draw, content):
    """A change near the start, where type and shape are."""
    return mutated(draw, [content[:128]]) + content[128:]


def _other_array(draw, array):
    """An array with a few other values, as a symmetric one stays symmetric; or of another kind."""
    change = draw.randrange(8)
    if change == 0:
        with np.errstate(all="ignore"):
            return array.astype(draw.choice(TYPES)) if array.dtype.kind in "fiub" else array
    if change == 1 and array.ndim:
        return array[draw.choice([slice(1, None), slice(0, 0), slice(None, None, -1)])]  # fewer
    if change == 2:
        return array[..., None] if draw.random() < 0.5 else array.ravel()
    changed = array.copy()
    for _ in range(draw.randint(1, 3) if array.size and array.dtype.kind in "fiub" else 0):
        place = tuple(draw.randrange(length) for length in array.shape)
        with np.errstate(all="ignore"):
            value = np.array(draw.choice(NUMBERS)).astype(array.dtype)
        changed[place] = value
        if changed.ndim == 2 and len({*changed.shape}) == 1:
            changed[place[::-1]] = value
    return changed


def mutated_columns(draw, columns):
    """Columns with a few other cells, a column less, twice, or by another name."""
    changed = dict(columns)
    for _ in range(draw.randint(1, 2)):
        name = draw.choice(sorted(changed))
        kind = draw.randrange(6)
        if kind < 3:
            cells = list(changed[name])
            cells[draw.randrange(len(cells))] = draw.choice(CELLS)
            changed[name] = cells
        elif kind == 3 and len(changed) > 1:
            del changed[name]
        elif kind == 4:
            changed[draw.choice([*columns, *TEXTS[:3], "new"])] = changed[name]
        else:
            changed[name] = [draw.choice(CELLS)] * len(changed[name])
    return changed


def mutated_parquet(draw, corpus):
    """A Parquet file of changed columns."""
    columns = mutated_columns(draw, draw.choice(corpus))
    out = io.BytesIO()
    arrays = [_array(cells) for cells in columns.values()]
    kind = draw.choice(["NONE", "SNAPPY"])
    parquet.write_table(pa.table(arrays, names=list(columns)), out, compression=kind)
    return out.getvalue()


def _array(cells):
    """A column; of texts if its cells have no type in common."""
    try:
        return pa.array(cells)
    except (pa.ArrowException, TypeError, OverflowError):
        return pa.array([None if cell is None else str(cell) for cell in cells])


def with_tar_checksum(block):
    """A tar header whose checksum is that of its content."""
    if len(block) != 512:
        return block
    total = sum(block) - sum(block[148:156]) + 8 * ord(" ")
    return block[:148] + b"%06o\0 " % total + block[156:]


def with_sha256(content):
    """Content behind its SHA-256."""
    return sha256(content).digest() + content


def mutated_message(draw, message):
    """A protobuf message with a field cleared, repeated or set to another value."""
    changed = type(message)()
    changed.CopyFrom(message)
    holder = draw.choice(list(_messages(changed)))
    field = draw.choice(holder.DESCRIPTOR.fields)
    value = draw.choice([*VALUES, b"", b"\0" * 9, getattr(holder, field.name)])
    try:
        _set(draw, holder, field, value)
    except (TypeError, ValueError, OverflowError, AttributeError):
        holder.ClearField(field.name)
    return changed


def _messages(message):
    """A message and those in it."""
    yield message
    for field, value in message.ListFields():
        if field.message_type is not None:
            for one in value if hasattr(value, "append") or hasattr(value, "add") else [value]:
                yield from _messages(one)


def _set(draw, holder, field, value):
    held = getattr(holder, field.name)
    if hasattr(held, "append"):
        held.append(value if not hasattr(held, "add") else held[0])
    elif field.message_type is not None:
        held.SetInParent()
    else:
        setattr(holder, field.name, value)
