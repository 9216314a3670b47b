"""Tokenizers of the kinds that models have, trained in memory on a few sentences, and a source of sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import cycle
from random import Random

from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, trainers
from tokenizers import Tokenizer as Rust

from niah.haystacks import noise
from niah.prompts.tokens import FastTokenizer, Tokenizer, WordTokenizer

SPECIALS = ["<|im_start|>", "<|im_end|>"]
NOUNS = ["miller", "river", "market", "bridge", "widow", "harvest", "letter", "barn", "orchard", "winter", "lantern"]
VERBS = ["crossed", "mended", "forgot", "remembered", "sold", "followed", "praised", "watched", "feared", "carried"]
PLACES = ["Alderford", "Brackenholt", "Cressing", "Dunmere", "Elverton", "Fenwick", "Garsdale", "Holloway"]
# full stops before line breaks and before spaces, so that the trained merges see both
_TRAINING = [
    f"The {noun} {verb} the road to {place}. {place} was quiet.\n\nThe special magic number for {place} is {n}.\n\n"
    for n, (noun, verb, place) in enumerate(zip(NOUNS * 6, cycle(VERBS), cycle(PLACES), strict=False))
] * 3


def _byte_level(pre_tokenizer: pre_tokenizers.PreTokenizer, training: Sequence[str] = _TRAINING) -> Rust:
    rust = Rust(models.BPE())
    rust.pre_tokenizer = pre_tokenizer
    rust.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=600, initial_alphabet=alphabet, special_tokens=SPECIALS, show_progress=False
    )
    rust.train_from_iterator(training, trainer)
    return rust


def gpt2_rust() -> Rust:
    """Byte-level BPE with GPT-2's splits: a sentence's leading space or blank line never fuses with what is before."""
    return _byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False))


def llama3_rust() -> Rust:
    """Byte-level BPE where punctuation takes following line breaks along, so that ".\\n\\n" is one token."""
    pattern = r" ?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    split = pre_tokenizers.Split(Regex(pattern), behavior="isolated")
    return _byte_level(
        pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    )


def gemma_rust() -> Rust:
    """Spaces as ▁, nothing split beforehand, bytes for unknown characters."""
    rust = Rust(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    rust.normalizer = normalizers.Replace(" ", "▁")
    # words are split for training only, as a SentencePiece model learns no merge across words
    rust.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(r"\n+"), behavior="isolated"),
            pre_tokenizers.Split("▁", behavior="merged_with_next"),
            pre_tokenizers.Split(Regex(r"[.0-9]"), behavior="isolated"),
        ]
    )
    specials = ["<unk>", *SPECIALS, *(f"<0x{byte:02X}>" for byte in range(256))]
    trainer = trainers.BpeTrainer(vocab_size=800, special_tokens=specials, show_progress=False)
    rust.train_from_iterator(_TRAINING, trainer)
    rust.pre_tokenizer = None
    rust.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    rust.add_special_tokens([AddedToken(token, special=True) for token in SPECIALS])
    return rust


def llama2_rust() -> Rust:
    """Like ``gemma_rust``, but it puts a space before every text and takes one away when decoding."""
    rust = gemma_rust()
    rust.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    rust.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return rust


def bare_rust() -> Rust:
    """Byte-level BPE that splits nothing beforehand: full stops, spaces and whole phrases fuse into one token."""
    filler = " ".join(noise.SENTENCES) + " "
    splits = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return _byte_level(splits, training=[filler * 10, *_TRAINING])


def unigram_rust() -> Rust:
    """A Unigram model over text with spaces as ▁, as SentencePiece makes them."""
    rust = Rust(models.Unigram())
    rust.pre_tokenizer = pre_tokenizers.Metaspace()
    rust.decoder = decoders.Metaspace()
    alphabet = sorted(set("".join(_TRAINING)) | set(map(chr, range(33, 127))))
    trainer = trainers.UnigramTrainer(
        vocab_size=500, special_tokens=["<unk>", *SPECIALS], unk_token="<unk>", initial_alphabet=alphabet,
        show_progress=False,
    )  # fmt: skip
    rust.train_from_iterator(_TRAINING, trainer)
    return rust


RUST = {"gpt2": gpt2_rust, "llama3": llama3_rust, "gemma": gemma_rust, "llama2": llama2_rust}
KINDS = ("words", *RUST)
# kinds that are tried on odd texts only
ODD_RUST = {"bare": bare_rust, "unigram": unigram_rust}


@cache
def tokenizer(kind: str) -> Tokenizer:
    return WordTokenizer() if kind == "words" else FastTokenizer((RUST | ODD_RUST)[kind](), kind)


class Village:
    """A haystack of made-up sentences that never repeat; ``limit`` ends it, ``every_line`` makes all paragraphs."""

    repeats = False
    language = "en"

    def __init__(self, *, limit: int | None = None, every_line: bool = False, seed: int = 0) -> None:
        self.digest = f"village-{limit}-{every_line}-{seed}"
        self._limit = limit
        self._every_line = every_line
        self._seed = seed

    def segments(self, stream: int) -> Iterator[str]:
        rng = Random(1000 * self._seed + stream)
        made = 0
        while self._limit is None or made < self._limit:
            start = "" if made == 0 else "\n\n" if self._every_line or rng.random() < 0.2 else " "
            words = [f"{rng.choice(VERBS)} the {rng.choice(NOUNS)}" for _ in range(rng.choice([1, 1, 2, 2, 3, 5, 9]))]
            yield f"{start}{rng.choice(PLACES)} {_spell(made)} {' and '.join(words)}."
            made += 1


class Lines:
    """A haystack of given segments."""

    repeats = False
    language = ""

    def __init__(self, segments: Sequence[str]) -> None:
        self.digest = f"lines-{len(segments)}"
        self._segments = list(segments)

    def segments(self, stream: int) -> Iterator[str]:
        yield from self._segments


def _spell(number: int) -> str:
    """A made-up word for a number, so that no two sentences are equal and none holds a digit."""
    syllables = ["ba", "de", "fi", "go", "hu", "ka", "le", "mi", "no", "pu"]
    return "".join(syllables[int(digit)] for digit in str(number)).capitalize()
