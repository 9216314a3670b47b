"""The chronicle: English that is plausible, never repeats a sentence, and is the same everywhere."""

from __future__ import annotations

import hashlib
import random
import re
import statistics
from itertools import islice

import pytest

from niah.errors import ConfigError
from niah.haystacks.chronicle.grammar import Inflection, finish
from niah.haystacks.chronicle.narrator import Telling, all_scenes, grammar, lines, trades
from niah.haystacks.chronicle.phrases import VERB_PHRASES
from niah.haystacks.chronicle.plugin import PLUGIN, VERSION, Chronicle, ChronicleOptions, open_chronicle
from niah.haystacks.chronicle.scenes.daily import FILLERS
from niah.haystacks.chronicle.scenes.events import OBJECTS, SEQUELS
from niah.haystacks.chronicle.seasons import SEASON_RULES
from niah.haystacks.chronicle.talk import TOPICS
from niah.haystacks.chronicle.world import World
from niah.prompts.words import CITIES

BANNED = ("special", "magic", "number", "passkey", "pass key", "secret", "code", "needle", "password", "uuid")
# well-known places; task keys are city names, which the text must never hold
PLACES = """amsterdam athens auckland baghdad bangkok barcelona beijing berlin bogota boston brazil brisbane brussels
    budapest cairo canada chicago china copenhagen cuba dallas delhi denmark dubai dublin edinburgh egypt england france
    geneva germany glasgow hamburg hanoi havana helsinki houston india iran ireland israel istanbul italy jakarta japan
    jordan kenya lagos lima lisbon liverpool london lyon madrid manchester manila marseille melbourne mexico miami milan
    montreal moscow mumbai munich nairobi naples norway oslo ottawa paris peru poland porto prague quito rome russia
    santiago seattle seoul shanghai singapore spain stockholm sweden sydney taipei tehran tokyo toronto turkey venice
    vienna warsaw washington wellington zurich"""


@pytest.fixture(scope="module")
def sample() -> list[str]:
    """About 100 thousand words."""
    return list(islice(Chronicle(ChronicleOptions()).segments(1), 6500))


@pytest.fixture(scope="module")
def words(sample: list[str]) -> list[str]:
    return re.findall(r"[a-z'-]+", "".join(sample).lower())


def test_the_text_is_what_this_version_wrote_before() -> None:
    # another text under the same version would silently change every benchmark: raise VERSION with this hash
    text = "".join(islice(Chronicle(ChronicleOptions()).segments(0), 400))
    assert VERSION == 1
    assert (
        hashlib.sha256(text.encode()).hexdigest() == "f7f7049d1a84b7edf1023ff7a0604f93f037584a6b65cab86c488c64ec927a56"
    )


def test_no_sentence_comes_twice(sample: list[str]) -> None:
    assert len({s.strip() for s in sample}) == len(sample)


def test_vocabulary_and_sentence_lengths_are_those_of_prose(sample: list[str], words: list[str]) -> None:
    assert len(set(words[:100_000])) > 4_000
    lengths = [len(s.split()) for s in sample]
    assert 13 <= statistics.median(lengths) <= 18
    assert statistics.stdev(lengths) > 8
    assert min(lengths) <= 3
    assert max(lengths) >= 50


def test_eight_word_runs_are_rarely_repeated(words: list[str]) -> None:
    runs = list(zip(*(words[i:] for i in range(8)), strict=False))
    assert 1 - len(set(runs)) / len(runs) < 0.01


def test_nothing_that_a_needle_may_use(sample: list[str], words: list[str]) -> None:
    text = "".join(sample).lower()
    assert [word for word in BANNED if word in text] == []
    assert not re.search(r"\d", text)
    assert set(words) & {place.lower() for place in (*PLACES.split(), *CITIES)} == set()


def test_paragraphs_have_one_to_twelve_sentences_and_balanced_quotes(sample: list[str]) -> None:
    paragraphs: list[list[str]] = [[]]
    for segment in sample:
        if segment.startswith("\n\n"):
            paragraphs.append([])
        paragraphs[-1].append(segment)
    sizes = [len(p) for p in paragraphs]
    assert min(sizes) == 1
    assert 8 <= max(sizes) <= 12
    for paragraph in paragraphs:
        assert "".join(paragraph).count('"') % 2 == 0


def test_sentences_are_well_formed(sample: list[str]) -> None:
    for segment in sample:
        sentence = segment.strip()
        assert re.match(r'"?[A-Z]', sentence), sentence
        assert sentence[-1] in '.?!"', sentence
        assert not re.search(r'  | [,.;?]|,,|[.?!][.,;]|[{}@_|\[\]]|\b(\w{2,}) \1\b|[^.?!,]"$', sentence), sentence


def test_articles_fit_the_word_after_them(sample: list[str]) -> None:
    text = "".join(sample)
    assert re.findall(r"\ban [^aeiouAEIOUh]\w*", text) == []
    wrong = re.findall(r"\ba ([aeiou]\w*)", text)
    assert {w for w in wrong if not w.startswith(("one", "ewe", "use", "uni"))} == set()


def test_people_return_and_are_called_he_or_she(words: list[str]) -> None:
    assert sum(words.count(w) for w in ("he", "she", "him", "her", "his")) > len(words) / 65


def test_seed_and_stream_choose_the_text() -> None:
    texts = {
        "".join(islice(Chronicle(ChronicleOptions(seed=seed)).segments(stream), 50))
        for seed in (0, 1)
        for stream in (0, 1, -1)
    }
    assert len(texts) == 6
    assert Chronicle(ChronicleOptions(seed=1)).digest != Chronicle(ChronicleOptions()).digest


def test_every_name_in_a_template_is_defined_and_every_rule_used() -> None:
    made = grammar()
    drawn = set(OBJECTS.values()) | {f"adj_{kind}" for kind in OBJECTS.values()} | {t.noun for t in TOPICS.values()}
    unused = [n for n in made.unused() if n not in drawn and not n.startswith(("scene ", "talk ", "fill_"))]
    assert made.undefined() == []
    # "part" is the union of tables that are used one by one
    assert unused in ([], ["part"])


def _templates() -> list[str]:
    blocks = [*SEASON_RULES.values(), *FILLERS.values(), *VERB_PHRASES.values()]
    blocks += [beat for beats in all_scenes().values() for beat in beats]
    blocks += [block for topic in TOPICS.values() for block in topic[1:]]
    return [line for block in blocks for line in lines(block) if line != "?"]


def test_templates_are_whole() -> None:
    # a line broken in the middle would be told as two halves
    cut = re.compile(r"\b(the|an?|of|at|by|with|than|and|or)$|^\{(building|water|land|opening)\}")
    for template in _templates():
        assert not cut.search(template), template
        for pair in ("[]", "{}"):
            assert template.count(pair[0]) == template.count(pair[1]), template
        assert template.count('"') % 2 == 0, template
        # alternatives do not nest
        assert not re.search(r"\[[^\]]*\[", template), template


def test_sequels_are_scenes() -> None:
    assert set(SEQUELS) | set(SEQUELS.values()) | set(OBJECTS) <= set(all_scenes())


@pytest.mark.parametrize(
    ("base", "form", "expected"),
    [
        ("mend", "d", "mended"),
        ("bake", "ing", "baking"),
        ("carry", "d", "carried"),
        ("trim", "ing", "trimming"),
        ("lie", "ing", "lying"),
        ("shoe", "ing", "shoeing"),
        ("tie", "d", "tied"),
        ("mow", "en", "mown"),
        ("quarrel", "d", "quarrelled"),
        ("open", "d", "opened"),
        ("play", "d", "played"),
        ("quit", "ing", "quitting"),
        ("go", "base", "go"),
    ],
)
def test_verbs_are_inflected(base: str, form: str, expected: str) -> None:
    inflection = Inflection("mow mowed mown;go went gone", "quarrel", {})
    assert inflection.verb(base, form) == expected


@pytest.mark.parametrize(
    ("noun", "expected"),
    [("box", "boxes"), ("berry", "berries"), ("day", "days"), ("calf", "calves"), ("arch", "arches")],
)
def test_nouns_are_made_plural(noun: str, expected: str) -> None:
    assert Inflection("", "", {"calf": "calves"}).plural(noun) == expected


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("@ owl sat on @ roof", "An owl sat on a roof."),
        ('"@ hour," he said', '"An hour," he said.'),
        ('he said "@ one-eyed man"', 'He said "a one-eyed man."'),
        ("who came?", "Who came?"),
        ("they met Odo Ash, the smith at Elm,", "They met Odo Ash, the smith at Elm."),
    ],
)
def test_clauses_become_sentences(raw: str, expected: str) -> None:
    assert finish(raw) == expected


def test_an_argument_is_refused() -> None:
    with pytest.raises(ConfigError, match="takes no argument, but got 'x'"):
        open_chronicle(ChronicleOptions(), "x")


def test_the_plugin_opens() -> None:
    assert next(iter(PLUGIN.open(PLUGIN.options(), "").segments(0)))[0].isupper()


def test_a_thing_is_introduced_once_and_then_known() -> None:
    telling = Telling(World(random.Random(1).random, trades(), ["plain"]))
    telling.noun, telling.quality = "ewe", "old"
    for _ in range(3):
        telling.out.append(" ")
        grammar().writer("O.a")(telling)
    first, *later = "".join(telling.out).split("  ")[0].strip().split(" ewe")[:-1]
    assert first == "@ old"
    assert {part.strip() for part in later} <= {"the", "the old"}
