"""``text``: the user's own text: a file, a folder, a glob or standard input (``text:PATH``)."""

from __future__ import annotations

import codecs
import gzip
import hashlib
import lzma
import math
import random
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

from niah.errors import ConfigError
from niah.paths import as_path
from niah.prompts import sentences
from niah.prompts.haystack import HaystackOptions, HaystackPlugin

SUFFIXES = (".txt", ".md", ".rst", ".txt.gz", ".txt.xz")
PARAGRAPH = "\n\n"


class TextOptions(HaystackOptions):
    """Options of ``text``. ``repeat`` starts again at the end, for ever, instead of ending."""

    repeat: bool = False


class Text:
    """An opened text, cut into sentences.

    Stream 0 starts at the beginning, every other one at another sentence; the end goes on with the beginning, so that
    a stream holds each sentence once (or without end where ``repeats``).
    """

    language = ""

    def __init__(self, text: str, *, repeat: bool) -> None:
        self.repeats = repeat
        self._segments = sentences.split_sentences(text)
        parameters = f"text 1/{sentences.VERSION}/{repeat}\n"
        self.digest = hashlib.sha256((parameters + text).encode()).hexdigest()

    def segments(self, stream: int) -> Iterator[str]:
        """Sentences with the white space of the text before them; a blank line where the end meets the beginning."""
        count = len(self._segments)
        start = stream * seeded_stride(self.digest, count) % count
        yield self._segments[start].lstrip()
        yield from self._segments[start + 1 :]
        while True:
            end = count if self.repeats else start
            if end:
                yield PARAGRAPH + self._segments[0]
                yield from self._segments[1:end]
            if not self.repeats:
                return


def seeded_stride(seed: str, count: int) -> int:
    """A step around a circle of ``count`` places that visits all of them before it comes back to the first."""
    # random() is stable between Python versions, unlike randrange(); the middle part keeps neighbours far apart
    stride = int(count * (0.25 + random.Random(seed).random() / 2)) or 1
    while math.gcd(stride, count) != 1:
        stride += 1
    return stride


def normalized(text: str) -> str:
    """The text with ``\\n`` line ends and without a byte order mark or outer white space."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").strip()


def open_text(options: TextOptions, argument: str) -> Text:
    """Read all of the text.

    Raises:
        ConfigError: nothing is there, it cannot be read, is no text in a Unicode encoding, or holds no text.
    """
    if not argument:
        raise ConfigError("haystack 'text' needs a path: use text:FILE, text:FOLDER, text:'GLOB' or text:- (stdin).")
    if argument == "-":
        documents = [_decoded(_standard_input(), "standard input")]
    else:
        documents = [_decoded(_contents(path), repr(str(path))) for path in _paths(argument)]
    text = PARAGRAPH.join(document for document in documents if document)
    if not text:
        raise ConfigError(f"haystack 'text': {argument!r} holds no text but white space; give it some.")
    return Text(text, repeat=options.repeat)


def _standard_input() -> bytes:
    if sys.stdin.isatty():
        raise ConfigError("haystack 'text:-' reads standard input, which is a terminal: pipe a text into the command.")
    return sys.stdin.buffer.read()


def _paths(argument: str) -> list[Path]:
    path = as_path(argument)
    if path.is_dir():
        found = _text_files(path)
        if not found:
            kinds = ", ".join(f"*{suffix}" for suffix in SUFFIXES)
            raise ConfigError(f"haystack 'text': folder {argument!r} holds none of {kinds}; name files by a glob.")
        return found
    if path.exists():
        return [path]
    if any(mark in argument for mark in "*?["):
        root = Path(path.anchor)
        found = sorted(p for p in root.glob(str(path.relative_to(root))) if p.is_file())
        if not found:
            raise ConfigError(f"haystack 'text': no file matches {argument!r}; check it, with quotes around the glob.")
        return found
    raise ConfigError(f"haystack 'text': {argument!r} does not exist; give a file, a folder, a glob or - for stdin.")


def _text_files(folder: Path) -> list[Path]:
    """Text files below a folder by relative path; what starts with a dot is left out, as ``ls`` does."""
    found = []
    for path in folder.rglob("*"):
        relative = path.relative_to(folder)
        hidden = any(part.startswith(".") for part in relative.parts)
        if not hidden and path.name.lower().endswith(SUFFIXES) and path.is_file():
            found.append(path)
    return sorted(found, key=lambda p: p.relative_to(folder).as_posix())


def _contents(path: Path) -> bytes:
    """The bytes of a file, decompressed when its name ends in .gz or .xz."""
    try:
        raw = path.read_bytes()
    except OSError as err:
        raise ConfigError(
            f"haystack 'text': {str(path)!r} cannot be read: {err.strerror or err}. Check its permissions."
        ) from err
    try:
        if path.suffix.lower() == ".gz":
            return gzip.decompress(raw)
        if path.suffix.lower() == ".xz":
            return lzma.decompress(raw)
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as err:
        raise ConfigError(f"haystack 'text': {str(path)!r} cannot be decompressed: {err}. Pack it again.") from err
    return raw


# text in two or four bytes a character says so at its start; what begins with neither mark is UTF-8
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SAMPLE_BYTES = 4096


def _decoded(raw: bytes, name: str) -> str:
    """Text of UTF-8 bytes, or of UTF-16 and UTF-32 with their mark, normalized."""
    encoding = next((encoding for mark, encoding in _MARKS if raw.startswith(mark)), "utf-8")
    if encoding == "utf-8":
        _refuse_binary(raw, name)
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError as err:
        what = "is not UTF-8" if encoding == "utf-8" else f"is damaged {encoding.upper()}"
        advice = "Convert it to UTF-8 text." if encoding == "utf-8" else "Save it anew as UTF-8 text."
        raise ConfigError(f"haystack 'text': {name} {what}: {err.reason} at byte {err.start}. {advice}") from err
    zero = text.find("\0")
    if zero >= 0:
        raise ConfigError(f"haystack 'text': {name} is binary: NUL at character {zero}. Convert it to UTF-8 text.")
    return normalized(text)


def _refuse_binary(raw: bytes, name: str) -> None:
    zero = raw.find(b"\0")
    if zero < 0:
        return
    sample = raw[:_SAMPLE_BYTES]
    halves = [sample[side::2].count(0) / max(1, len(sample) // 2) for side in (0, 1)]
    # letters of most scripts share one of their two bytes, which in Latin text is zero
    if max(halves) > 0.4 > 0.1 > min(halves):
        order = "UTF-16BE" if halves[0] > halves[1] else "UTF-16LE"
        raise ConfigError(
            f"haystack 'text': {name} looks like {order} text without its mark. Convert it to UTF-8: "
            f"iconv -f {order} -t UTF-8 FILE."
        )
    raise ConfigError(f"haystack 'text': {name} is binary: NUL at byte {zero}. Convert it to UTF-8 text.")


PLUGIN = HaystackPlugin(
    name="text",
    summary="Your own text: a file, folder or glob of text files, or - for standard input.",
    options=TextOptions,
    open=open_text,
)
