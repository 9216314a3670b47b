"""Sentence boundaries in many languages; joined, the sentences are the text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from niah.prompts.sentences import MAX_SEGMENT_CHARACTERS, split_sentences

CASES = {
    "titles and initials": ["Mr. Ash met Dr. Elm at St. Anne.", " Then J. R. Reed came!", " So did I.", " We left."],
    "abbreviations": [
        "They had tea, cake etc.",
        " Fruit, e.g. plums, i.e. prunes, etc. was late.",
        " See No. 5 on p. 9.",
    ],
    "no as a word": ["She said no.", " Then it was art.", " It ended."],
    "decimals": ["Pi is 3.14, not 3.2.", " In 1999.", " Well."],
    "ellipsis": ["Wait... it rains.", " So… who knows…", " Nobody."],
    "quotes": ['"Really?" he asked.', ' "Yes."', " (Not so.)", " “Fine!”", " End"],
    "lists": ["1. First.", "\n2. Second one.", "\n3. Third."],
    "blank line": ["A heading", "\n\nText without end", "\n \n\n  more"],
    "German": ["Am 3. Oktober kam z.B. Dr. Maier.", " Er blieb usw.", " Dann ging er am 24. Dezember heim."],
    "Spanish": ["¿Qué hace Ud. aquí?", " ¡Nada!", " El Sr. López salió."],
    "Russian": ["Он родился в 1961 г. в доме.", " Это было давно, т.е. раньше и т.д.", " Потом ушёл."],
    "Chinese": ["他来了。", "她说：「你好！」", "然后走了？", "是的！！", "真的。"],
    "Chinese with ASCII": ["真的吗?", "是的!", "好"],
    "Japanese": ["今日は晴れ。", "「行こう！」と彼は言った。", "終わり。"],
    "Korean": ["안녕하세요.", " 저는 학생입니다!", " 정말요?"],
    "Arabic": ["كيف حالك؟", " أنا بخير.", " شكرا!"],
    "Urdu": ["وہ آیا۔", " وہ گیا۔"],
    "Hindi": ["वह आया।", " वह गया?", " हाँ।"],
}


@pytest.mark.parametrize("sentences", CASES.values(), ids=CASES.keys())
def test_sentences_end_where_readers_end_them(sentences: list[str]) -> None:
    assert split_sentences("".join(sentences)) == sentences


_TEXTS = st.lists(
    st.sampled_from(
        [*'.!?…。！？؟।"”) \n\t', "\n\n", "Mr.", "e.g.", "No.", "3.14", "J.", "abc", "Word", "文", "と", "é"]
    ),
    max_size=60,
).map("".join)


@given(st.one_of(st.text(), _TEXTS))
def test_nothing_is_lost(text: str) -> None:
    segments = split_sentences(text)
    assert "".join(segments) == text
    assert all(segments)
    # white space goes before a sentence, never alone, unless there is nothing else
    assert len(segments) <= 1 or not any(s.isspace() for s in segments)


@given(st.integers(1, 3 * MAX_SEGMENT_CHARACTERS), st.sampled_from(["x", "word ", "文", "क्षि", "é"]))
def test_no_segment_is_unbounded(length: int, unit: str) -> None:
    text = (unit * length)[:length].strip()
    segments = split_sentences(text)
    assert "".join(segments) == text
    assert max(map(len, segments)) <= MAX_SEGMENT_CHARACTERS


def test_long_text_is_cut_at_white_space_and_not_before_an_accent() -> None:
    assert all(s.startswith(" word") for s in split_sentences("word " * 1500 + "end")[1:])
    decomposed = "x" + "e\u0301" * 2000
    assert all(not s.startswith("\u0301") for s in split_sentences(decomposed))


def test_nothing_comes_from_nothing() -> None:
    assert split_sentences("") == []
    assert split_sentences("  \n") == ["  \n"]
    assert split_sentences("One. \n") == ["One. \n"]
