from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tokenizers import Tokenizer as Rust
from tokenizers import models, normalizers, pre_tokenizers

from niah.errors import ConfigError
from niah.prompts.tokens import COMPLETION, FastTokenizer, Template, WordTokenizer
from tests.helpers.small_tokenizers import KINDS, RUST, gpt2_rust, llama2_rust, tokenizer

TEXTS = [
    "",
    " ",
    "The special magic number for Oslo is 7412839.",
    " leading and trailing ",
    "One.\n\nTwo.  Three\t\n",
    "日本語。次の文。 Ünïcödé – “quoted” 🦫🦫",
    "1,234,567 8471926",
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", TEXTS)
def test_round_trip(kind: str, text: str) -> None:
    tok = tokenizer(kind)
    assert tok.decode(tok.encode(text)) == text
    assert tok.encode_batch([text, text]) == [tok.encode(text)] * 2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", TEXTS)
def test_offsets_start_where_the_token_starts(kind: str, text: str) -> None:
    tok = tokenizer(kind)
    ids, starts = tok.encode_offsets(text)
    assert ids == tok.encode(text)
    assert starts == sorted(starts)
    assert starts[:1] == ([0] if text else [])
    for i, start in enumerate(starts):
        # tokens up to a character's first token decode to the text before that character
        if i and starts[i - 1] != start:
            assert tok.decode(ids[:i]) == text[:start]


@pytest.mark.parametrize("kind", KINDS)
def test_no_space_of_its_own(kind: str) -> None:
    tok = tokenizer(kind)
    assert tok.decode(tok.encode("Oslo") + tok.encode("."))[:6] == "Oslo."
    assert tok.decode(tok.encode(" Oslo")) == " Oslo"


@pytest.mark.parametrize("kind", RUST)
def test_special_tokens_are_parsed_in_templates_only(kind: str) -> None:
    tok = tokenizer(kind)
    text = "<|im_start|>user\nHi<|im_end|>"
    special = tok.encode("<|im_start|>")
    assert len(special) == 1
    assert tok.encode(text).count(special[0]) == 1
    assert tok.decode(tok.encode(text)) == text
    plain, (offset_ids, _) = tok.encode_batch([text])[0], tok.encode_offsets(text)
    assert special[0] not in plain
    assert special[0] not in offset_ids
    assert tok.decode(plain) == text


def test_the_wrapped_tokenizer_is_left_alone() -> None:
    rust = llama2_rust()
    before = rust.encode("Oslo").tokens
    tok = FastTokenizer(rust, "llama2")
    assert before[0].startswith("▁")
    assert rust.encode("Oslo").tokens == before
    assert not tok.decode(tok.encode("Oslo")).startswith(" ")


def test_habits_of_other_tokenizers_are_switched_off() -> None:
    rust = gpt2_rust()
    plain = FastTokenizer(rust, "plain").encode("Oslo is quiet.")
    rust.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    rust.enable_truncation(2)
    rust.enable_padding(length=50)
    assert FastTokenizer(rust, "spacing").encode("Oslo is quiet.") == plain
    spaced = FastTokenizer(rust, "spacing").encode_offsets("a b c")
    assert spaced[1] == [0, 1, 3]


def test_metaspace_puts_no_space_first() -> None:
    rust = llama2_rust()
    rust.normalizer = None
    rust.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    tok = FastTokenizer(rust, "metaspace")
    assert tok.decode(tok.encode("Oslo is")) == "Oslo is"


def test_digest_tells_vocabularies_apart_and_survives_a_file(tmp_path: Path) -> None:
    rust = gpt2_rust()
    rust.save(str(tmp_path / "tokenizer.json"))
    loaded = FastTokenizer.from_file(tmp_path / "tokenizer.json")
    assert loaded.name == tmp_path.name
    assert loaded.digest == FastTokenizer(rust, "other name").digest
    assert len({tokenizer(kind).digest for kind in KINDS}) == len(KINDS)


def test_a_tokenizer_that_loses_text_is_refused() -> None:
    rust = gpt2_rust()
    rust.normalizer = normalizers.Lowercase()
    with pytest.raises(ConfigError, match="'lower' gives 'one fact"):
        FastTokenizer(rust, "lower")
    words = Rust(models.WordLevel({"<unk>": 0}, unk_token="<unk>"))
    with pytest.raises(ConfigError, match="keeps case, spaces and line breaks"):
        FastTokenizer(words, "unknown words")


def test_bad_files(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not exist"):
        FastTokenizer.from_file(tmp_path / "no.json")
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    with pytest.raises(ConfigError, match="cannot be read"):
        FastTokenizer.from_file(broken)
    other = tmp_path / "config.json"
    other.write_text(json.dumps({"vocab": {}}))
    with pytest.raises(ConfigError, match="has no 'model'"):
        FastTokenizer.from_file(other)


def test_word_ids_are_a_function_of_the_text() -> None:
    text = "The number 8471926 日本 🦫"
    code = f"from niah.prompts.tokens import WordTokenizer; print(WordTokenizer().encode({text!r}))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    ids = WordTokenizer().encode(text)
    assert json.loads(out) == ids
    assert all(0 < token < 2**25 for token in ids)


def test_word_pieces() -> None:
    ids, starts = WordTokenizer().encode_offsets("is 8471.\n日")
    assert [WordTokenizer().decode([token]) for token in ids] == ["is", " 84", "71", ".", "\n", "日"]
    assert starts == [0, 2, 5, 7, 8, 9]


def test_templates() -> None:
    chat = Template("chat", "<|im_start|>user\n", "<|im_end|>\n")
    assert chat.digest == Template("another name", "<|im_start|>user\n", "<|im_end|>\n").digest
    assert chat.digest != COMPLETION.digest
    assert chat.digest != Template("chat", "<|im_start|>user", "\n<|im_end|>\n").digest
    assert Template("chat", "a", "b", "given").digest == "given"
