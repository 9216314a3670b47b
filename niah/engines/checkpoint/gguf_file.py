"""Checks that a GGUF file is complete: reads its header, and where its last tensor ends. Pure; reads no weights.

Source of the layout: the GGUF specification, versions 2 and 3 (little-endian).
"""

from __future__ import annotations

import mmap
import re
import struct
from pathlib import Path

from niah.engines.checkpoint.files import refuse_pointer
from niah.errors import ConfigError

MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_PART = re.compile(r"-(\d{5})-of-(\d{5})\.gguf$")
# bytes of a value by the number of its kind; 8 is a text and 9 a list
_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_TEXT, _LIST = 8, 9
_ALIGNMENT = "general.alignment"
_MOST_NESTED = 4
# elements and bytes of a block, by the number of the tensor's type; what is not here is measured by its start alone
_BLOCKS = {
    0: (1, 4),
    1: (1, 2),
    30: (1, 2),
    24: (1, 1),
    25: (1, 2),
    26: (1, 4),
    27: (1, 8),
    28: (1, 8),
    2: (32, 18),
    3: (32, 20),
    6: (32, 22),
    7: (32, 24),
    8: (32, 34),
    20: (32, 18),
    39: (32, 17),
    10: (256, 84),
    11: (256, 110),
    12: (256, 144),
    13: (256, 176),
    14: (256, 210),
}


class _TruncatedHeader(Exception):
    """The file ends before its header does."""


def check_start(path: Path, model: str) -> None:
    """Check the first bytes.

    Raises:
        ConfigError: it is a pointer, or no GGUF file.
    """
    refuse_pointer(path, path.name, path.parent)
    with path.open("rb") as file:
        start = file.read(len(MAGIC))
    if start != MAGIC:
        what = "is empty" if not start else "is not a GGUF file (it does not start with 'GGUF')"
        raise ConfigError(f"{model!r} {what}. Name a .gguf model.")


def check_gguf(path: Path, model: str) -> None:
    """Check a GGUF file and, where it is one of several parts, that the others exist.

    Raises:
        ConfigError: it is a pointer, no GGUF file, of a version that is not known, cut short, or a part is missing.
    """
    check_start(path, model)
    again = "Download it anew."
    size = path.stat().st_size
    with path.open("rb") as file:
        version = int.from_bytes(file.read(8)[len(MAGIC) :], "little")
        if version not in _VERSIONS:
            swapped = int.from_bytes(version.to_bytes(4, "little"), "big")
            found = "in big-endian order" if swapped in _VERSIONS else f"of version {version}"
            raise ConfigError(
                f"the GGUF file {model!r} cannot be read: it is {found}, and versions 2 and 3 in little-endian order "
                "are read. Convert the model anew."
            )
        try:
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                wanted = _Header(data).end()
        except _TruncatedHeader as err:
            raise ConfigError(
                f"{model!r} is cut short: its header does not end in its {size:,} bytes. {again}"
            ) from err
    if size < wanted:
        raise ConfigError(f"{model!r} is cut short: it has {size:,} of {wanted:,} bytes. {again}")
    _check_parts(path, model)


def _check_parts(path: Path, model: str) -> None:
    match = _PART.search(path.name)
    if match is None:
        return
    stem, total = path.name[: match.start()], int(match[2])
    names = [f"{stem}-{number:05d}-of-{total:05d}.gguf" for number in range(1, total + 1)]
    missing = [name for name in names if not (path.parent / name).is_file()]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise ConfigError(
            f"{model!r} is in {total} parts, of which {', '.join(missing[:3])} {verb} missing. Download all of them."
        )
    for name in names:
        if name != path.name:
            refuse_pointer(path.parent / name, name, path.parent)


class _Header:
    """Reads the header in one pass."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data, self._at, self._size = data, 8, len(data)
        self._alignment = 32

    def end(self) -> int:
        """Size that the file must have in bytes: the end of its last tensor."""
        tensors, values = self._number("<Q"), self._number("<Q")
        for _ in range(values):
            key = self._text()
            kind = self._number("<I")
            if key == _ALIGNMENT.encode() and _SIZES.get(kind) == 4:
                self._alignment = max(1, self._number("<I"))
            else:
                self._skip_value(kind, 0)
        ends = [self._tensor() for _ in range(tensors)]
        data = -(-self._at // self._alignment) * self._alignment
        return data + max(ends) if ends else self._at

    def _tensor(self) -> int:
        """Where a tensor ends, counted from the start of the tensors."""
        self._text()
        elements = 1
        for _ in range(min(self._number("<I"), 16)):
            elements *= self._number("<Q")
        kind, offset = self._number("<I"), self._number("<Q")
        block, held = _BLOCKS.get(kind, (1, 0))
        return offset + -(-elements // block) * held

    def _skip_value(self, kind: int, depth: int) -> None:
        if kind in _SIZES:
            self._skip(_SIZES[kind])
        elif kind == _TEXT:
            self._text()
        elif kind == _LIST and depth < _MOST_NESTED:
            inner, count = self._number("<I"), self._number("<Q")
            if inner in _SIZES:
                self._skip(_SIZES[inner] * count)
                return
            # no entry is shorter than its own length
            if count * 8 > self._size - self._at:
                raise _TruncatedHeader
            for _ in range(count):
                self._skip_value(inner, depth + 1)
        else:
            raise _TruncatedHeader

    def _text(self) -> bytes:
        length = self._number("<Q")
        start = self._at
        self._skip(length)
        return self._data[start : self._at] if length <= 64 else b""

    def _number(self, layout: str) -> int:
        start = self._at
        self._skip(struct.calcsize(layout))
        return int(struct.unpack_from(layout, self._data, start)[0])

    def _skip(self, count: int) -> None:
        if count > self._size - self._at:
            raise _TruncatedHeader
        self._at += count
