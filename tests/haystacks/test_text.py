"""The user's own text: files, folders, globs, standard input, and every way in which they can be wrong."""

from __future__ import annotations

import gzip
import io
import lzma
import sys
from itertools import islice
from pathlib import Path

import pytest

from niah.errors import ConfigError
from niah.haystacks.text import PLUGIN, Text, TextOptions, open_text, seeded_stride

STORY = "One fish swam. Two fish swam!\n\nThree fish swam? Four fish swam. Five fish swam."


def _open(argument: object, *, repeat: bool = False) -> Text:
    return open_text(TextOptions(repeat=repeat), str(argument))


def _text(argument: object) -> str:
    return "".join(_open(argument).segments(0))


@pytest.fixture
def story(tmp_path: Path) -> Path:
    path = tmp_path / "story.txt"
    path.write_bytes(b"\xef\xbb\xbf" + STORY.replace("\n", "\r\n").encode() + b"\r\n\r\n")
    return path


def test_stream_zero_is_the_text_with_plain_line_ends(story: Path) -> None:
    assert _text(story) == STORY


def test_other_streams_start_elsewhere_and_wrap_once(story: Path) -> None:
    text = _open(story)
    streams = ["".join(text.segments(stream)) for stream in range(5)]
    # five sentences, five starts; the sixth stream would be the first again
    assert len(set(streams)) == 5
    for stream in streams:
        assert sorted(stream.replace("\n\n", " ").split(" ")) == sorted(STORY.replace("\n\n", " ").split(" "))
        assert stream.startswith(("One", "Two", "Three", "Four", "Five"))
        assert stream.startswith("One") or "\n\nOne fish" in stream


def test_repeat_goes_on_for_ever(story: Path) -> None:
    text = _open(story, repeat=True)
    assert text.repeats
    assert "".join(islice(text.segments(0), 12)) == f"{STORY}\n\n{STORY}\n\nOne fish swam. Two fish swam!"
    start = list(islice(text.segments(1), 5))
    # a whole turn later the same sentences come again, the first one with white space before it
    assert [s.strip() for s in islice(text.segments(1), 5, 10)] == [s.strip() for s in start]
    assert text.digest != _open(story).digest


def test_a_single_sentence_is_its_own_stream(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Alone.")
    assert list(_open(tmp_path / "a.txt").segments(3)) == ["Alone."]
    assert "".join(islice(_open(tmp_path / "a.txt", repeat=True).segments(1), 2)) == "Alone.\n\nAlone."


def test_a_folder_is_read_by_relative_path_with_what_is_packed(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / "b" / "one.md").write_text("B one.")
    (tmp_path / "a.txt").write_text("A.")
    (tmp_path / "c.txt.gz").write_bytes(gzip.compress(b"C."))
    (tmp_path / "d.txt.xz").write_bytes(lzma.compress(b"D."))
    (tmp_path / "e.rst").write_text("  \n")
    (tmp_path / "z.bin").write_bytes(b"\0")
    (tmp_path / ".git" / "x.txt").write_text("Hidden.")
    assert _text(tmp_path) == "A.\n\nB one.\n\nC.\n\nD."


def test_a_glob_names_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("b.txt", "a.txt", "c.md"):
        (tmp_path / name).write_text(f"From {name[0]}.")
    assert _text(tmp_path / "*.txt") == "From a.\n\nFrom b."
    monkeypatch.chdir(tmp_path)
    assert _text("[bc].*") == "From b.\n\nFrom c."


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    class Pipe(io.TextIOWrapper):
        terminal = False

        def isatty(self) -> bool:
            return self.terminal

    pipe = Pipe(io.BytesIO(b"Piped. Text."))
    monkeypatch.setattr(sys, "stdin", pipe)
    assert _text("-") == "Piped. Text."
    pipe.terminal = True
    with pytest.raises(ConfigError, match="is a terminal: pipe a text"):
        _open("-")


def test_the_digest_is_that_of_the_content(tmp_path: Path) -> None:
    for name, content in (("a.txt", "One. Two."), ("b.txt", "One. Two.\n"), ("c.txt", "One. Three.")):
        (tmp_path / name).write_text(content)
    digests = [_open(tmp_path / f"{name}.txt").digest for name in "abc"]
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8-sig"])
def test_text_with_a_mark_is_read_as_it_says(tmp_path: Path, encoding: str) -> None:
    text = "Übergänge führen hinüber. 東京は雨です。 One more."
    (tmp_path / "plain.txt").write_bytes(text.encode())
    (tmp_path / "marked.txt").write_bytes(text.encode(encoding))
    assert _open(tmp_path / "marked.txt").digest == _open(tmp_path / "plain.txt").digest
    for byte_order, mark in (("utf-16-be", b"\xfe\xff"), ("utf-32-be", b"\0\0\xfe\xff")):
        (tmp_path / "other.txt").write_bytes(mark + text.encode(byte_order))
        assert _open(tmp_path / "other.txt").digest == _open(tmp_path / "plain.txt").digest


def test_the_stride_visits_every_place() -> None:
    for count in range(1, 60):
        stride = seeded_stride("a digest", count)
        assert {stream * stride % count for stream in range(count)} == set(range(count))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.txt", b" \n", "holds no text but white space; give it some"),
        ("nul.txt", b"text\0more", "'.*nul.txt' is binary: NUL at byte 4"),
        ("latin.txt", "déjà".encode("latin-1"), "'.*latin.txt' is not UTF-8: invalid continuation byte at byte 1"),
        (
            "wide.txt",
            "Plain text.".encode("utf-16-le"),
            "looks like UTF-16LE text without its mark. Convert it to UTF-8: i",
        ),
        ("other.txt", "Plain text.".encode("utf-16-be"), "looks like UTF-16BE text without its mark"),
        ("cut.txt", "Plain text.".encode("utf-16")[:-1], "is damaged UTF-16: truncated data"),
        ("nul16.txt", "text\0more".encode("utf-16"), "is binary: NUL at character 4"),
        ("bad.txt.gz", b"not gzip", "'.*bad.txt.gz' cannot be decompressed: Not a gzipped file"),
        ("short.txt.gz", gzip.compress(b"text", mtime=0)[:-4], "cannot be decompressed: .*end-of-stream"),
        ("bad.txt.xz", b"not xz", "'.*bad.txt.xz' cannot be decompressed"),
    ],
)
def test_files_that_are_no_text_are_refused(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ConfigError, match=message):
        _open(tmp_path / name)


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("", "needs a path: use text:FILE"),
        ("gone.txt", "'.*gone.txt' does not exist; give a file"),
        ("*.none", "no file matches '.*none'; check it"),
        ("folder", "folder '.*folder' holds none of \\*.txt"),
    ],
)
def test_paths_that_lead_nowhere_are_refused(tmp_path: Path, argument: str, message: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "picture.png").write_bytes(b"\x89PNG")
    with pytest.raises(ConfigError, match=message):
        _open(tmp_path / argument if argument else "")


def test_an_unreadable_file_is_refused(story: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # permissions do not stop root, so the system's answer is played
    def denied(self: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "read_bytes", denied)
    with pytest.raises(ConfigError, match=r"cannot be read: Permission denied. Check its permissions"):
        _open(story)


def test_the_plugin_knows_its_option() -> None:
    assert PLUGIN.options.model_validate({"repeat": True}) == TextOptions(repeat=True)
