"""Limits on the size of replies: a body is counted while it is read and while it is decompressed.

The HTTP library would keep a body of any size, and inflate one of any ratio before anybody can look at it. A hook on
each response puts a counting stream in the place of its own, which also does the inflating.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

# far more than an answer with its log-probabilities takes; results of batches are files with many answers
MOST_BYTES = 32 * 2**20
MOST_BATCH_BYTES = 2 * 2**30
_BATCH_ENDS = ("/content", "/results")
_PIECE_BYTES = 2**16
_READ_HERE = ("gzip", "x-gzip", "deflate")
# what we can inflate piece by piece, and so ask for
HEADERS = {"Accept-Encoding": "gzip, deflate"}


class UnreadableReply(Exception):
    """A reply that is larger than any answer, or packed in a way that was not asked for."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def cause_of(error: BaseException | None) -> UnreadableReply | None:
    """The fault of this kind behind an exception that a library made of it."""
    while error is not None:
        if isinstance(error, UnreadableReply):
            return error
        error = error.__cause__
    return None


def hooks(library: Any) -> dict[str, list[Callable[[Any], None]]]:
    """``event_hooks`` of a client of ``httpx2`` or ``httpx``, given as the module."""

    class Stream(library.SyncByteStream):  # type: ignore[misc]
        def __init__(self, inner: Any, meter: _Meter) -> None:
            self._inner, self._meter = inner, meter

        def __iter__(self) -> Iterator[bytes]:
            for piece in self._inner:
                yield from self._meter.read(piece)

        def close(self) -> None:
            self._inner.close()

    def bound(response: Any) -> None:
        response.stream = Stream(response.stream, _meter_of(response))

    return {"response": [bound]}


def async_hooks(library: Any) -> dict[str, list[Callable[[Any], Awaitable[None]]]]:
    """The same for a client that is awaited."""

    class Stream(library.AsyncByteStream):  # type: ignore[misc]
        def __init__(self, inner: Any, meter: _Meter) -> None:
            self._inner, self._meter = inner, meter

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for piece in self._inner:
                for found in self._meter.read(piece):
                    yield found

        async def aclose(self) -> None:
            await self._inner.aclose()

    async def bound(response: Any) -> None:
        response.stream = Stream(response.stream, _meter_of(response))

    return {"response": [bound]}


def _meter_of(response: Any) -> _Meter:
    packing = str(response.headers.get("content-encoding", "")).strip().lower()
    if packing in ("", "identity"):
        packing = ""
    elif packing not in _READ_HERE:
        raise UnreadableReply("bad_reply", f"the reply is packed by {packing[:40]!r}, which was not asked for")
    else:
        # the library would unpack it a second time
        del response.headers["content-encoding"]
    is_batch = str(response.request.url.path).endswith(_BATCH_ENDS)
    return _Meter(MOST_BATCH_BYTES if is_batch else MOST_BYTES, packing)


class _Meter:
    """Counts what comes in and what comes out of it."""

    def __init__(self, most: int, packing: str) -> None:
        self._most, self._packing = most, packing
        self._came = self._given = 0
        self._inflater: Any = None

    def read(self, piece: bytes) -> Iterator[bytes]:
        """A piece, unpacked.

        Raises:
            UnreadableReply: too much of it, or it cannot be unpacked.
        """
        self._came += len(piece)
        self._check(self._came)
        if not self._packing:
            yield piece
            return
        try:
            for found in self._inflated(piece):
                self._given += len(found)
                self._check(self._given)
                yield found
        except zlib.error as err:
            raise UnreadableReply("bad_reply", f"the reply cannot be unpacked: {err}") from err

    def _check(self, count: int) -> None:
        if count > self._most:
            reason = f"the reply is larger than {self._most // 2**20} MiB, which no answer is; the rest was not read"
            raise UnreadableReply("reply_too_large", reason)

    def _inflated(self, piece: bytes) -> Iterator[bytes]:
        if self._inflater is None:
            self._inflater = zlib.decompressobj(self._bits(piece))
        while piece:
            yield self._inflater.decompress(piece, _PIECE_BYTES)
            piece = self._inflater.unconsumed_tail
            if self._inflater.eof:
                return

    def _bits(self, start: bytes) -> int:
        if self._packing != "deflate":
            return 16 + zlib.MAX_WBITS
        # some servers leave the header away
        has_header = len(start) > 1 and start[0] & 0x0F == 8 and int.from_bytes(start[:2], "big") % 31 == 0
        return zlib.MAX_WBITS if has_header else -zlib.MAX_WBITS
