"""What every haystack source promises, whichever it is."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path

import pytest

from niah.prompts.haystack import Haystack
from niah.registry import load, names

SOURCES = ("chronicle", "hf", "needles", "noise", "text")
MANY = 600


@pytest.fixture
def argument(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """What follows the source's name, with the file that it needs."""
    rows = [f"This is sentence {i} of a text. Another follows it, after {i} more." for i in range(40)]
    if request.param == "text":
        (tmp_path / "rows.txt").write_text("\n\n".join(rows))
        return str(tmp_path / "rows.txt")
    if request.param == "hf":
        pytest.importorskip("datasets")
        (tmp_path / "rows.jsonl").write_text("\n".join(json.dumps({"text": row}) for row in rows))
        return str(tmp_path / "rows.jsonl")
    return ""


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def _opened(name: str, argument: str) -> Haystack:
    plugin = load("haystacks", name)
    assert plugin.name == name
    assert plugin.summary
    haystack: Haystack = plugin.open(plugin.options(), argument)
    return haystack


each_source = pytest.mark.parametrize(("name", "argument"), [(n, n) for n in SOURCES], indirect=True)


def test_every_built_in_source_is_here() -> None:
    assert set(SOURCES) <= set(names("haystacks"))


@each_source
def test_the_same_stream_is_the_same_text(name: str, argument: str) -> None:
    one, other = _opened(name, argument), _opened(name, argument)
    assert one.digest == other.digest
    assert list(islice(one.segments(3), MANY)) == list(islice(other.segments(3), MANY))
    # a stream read half way does not disturb another one
    half = islice(one.segments(2), 5)
    assert list(islice(one.segments(2), 5)) == list(half)


@each_source
def test_other_streams_are_other_texts(name: str, argument: str) -> None:
    haystack = _opened(name, argument)
    assert len({"".join(islice(haystack.segments(stream), 30)) for stream in range(4)}) == 4


@each_source
def test_segments_carry_their_white_space_in_front(name: str, argument: str) -> None:
    segments = list(islice(_opened(name, argument).segments(1), MANY))
    assert segments[0] == segments[0].strip()
    for segment in segments[1:]:
        assert segment.startswith("\n\n") or (segment[0] == " " and segment[1] != " ")
        assert segment == segment.rstrip()
        assert segment.strip()


@each_source
def test_no_sentence_comes_twice_unless_the_source_says_so(name: str, argument: str) -> None:
    haystack = _opened(name, argument)
    sentences = [s.strip() for s in islice(haystack.segments(1), MANY)]
    assert (len(set(sentences)) < len(sentences)) == haystack.repeats
    assert len(haystack.digest) == 64
