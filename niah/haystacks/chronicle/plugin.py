"""``chronicle``: endless seeded English prose about a small made-up valley, in which no sentence comes twice."""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections import deque
from collections.abc import Iterator

from niah.errors import ConfigError
from niah.haystacks.chronicle import phrases, seasons, talk
from niah.haystacks.chronicle import trades as trade_tables
from niah.haystacks.chronicle import world as world_tables
from niah.haystacks.chronicle.grammar import finish
from niah.haystacks.chronicle.lexicon import nouns, qualities
from niah.haystacks.chronicle.narrator import Telling, all_scenes, grammar, lines, trades
from niah.haystacks.chronicle.scenes import daily, events
from niah.haystacks.chronicle.world import Person, Thread, World
from niah.prompts.haystack import HaystackOptions, HaystackPlugin

# raise it when the code, not only a table, changes the text
VERSION = 1

# drawn with equal chance between the beats of a scene
FILLERS = (
    *("exchange", "exchange", "exchange", "fill_talk", "fill_short", "fill_short", "fill_short", "fill_think"),
    *("fill_think", "fill_nature", "fill_weather", "fill_crowd", "fill_crowd", "fill_long"),
)
EXCHANGE_END_CHANCE = 0.5
FILLER_CHANCE = 0.38
COMPOUND_CHANCE = 0.14
COMPOUND_FILLERS = ("fill_react", "fill_react", "fill_nature", "fill_weather")
CONJUNCTIONS = ("; ", ", and ", ", and ", "; ")
MAX_COMPOUND_CHARACTERS = 220
MAX_PARAGRAPH_SENTENCES = 12
# after so many sentences already told, the long pool is drawn from: its sentences practically never collide
DRAWS_BEFORE_LONG = 12
RECENT_SCENES = 9
# "mild and mild", "in in": two draws from one table that came out alike
STUTTER = re.compile(r"\b([\w-]{2,}),? (?:and |nor |or )?\1\b")


class ChronicleOptions(HaystackOptions):
    """Options of ``chronicle``. ``seed`` picks another chronicle; streams are chosen by the caller."""

    seed: int = 0


class _Teller:
    """Tells scene after scene; each call of ``scene`` gives its paragraphs."""

    def __init__(self, seed: int, stream: int) -> None:
        # strings seed through SHA-512 and random() is stable between Python versions, unlike choice() and shuffle()
        self._random = random.Random(f"niah chronicle {VERSION}/{seed}/{stream}").random
        self._world = World(self._random, trades(), qualities.QUALITIES["temper"].split())
        self._grammar = grammar()
        self._telling = Telling(self._world)
        self._told: set[bytes] = set()
        self._recent: deque[str] = deque(maxlen=RECENT_SCENES)
        sequels = set(events.SEQUELS.values())
        self._openers = [name for name in all_scenes() if name not in sequels]

    def scene(self) -> Iterator[list[str]]:
        """Paragraphs of the next scene, each a list of sentences."""
        self._world.advance()
        thread = self._world.due_thread()
        name = thread.scene if thread else self._next_scene()
        self._recent.append(name)
        self._cast(name, thread)
        yield from self._into_paragraphs(self._sentences(name))
        self._leave_thread(name)

    def _next_scene(self) -> str:
        fresh = [name for name in self._openers if name not in self._recent]
        return self._world.pick(fresh)

    def _cast(self, name: str, thread: Thread | None) -> None:
        telling, world = self._telling, self._world
        telling.scene += 1
        telling.noun_named = thread is not None
        if thread:
            telling.first, telling.second = thread.first, thread.second
            telling.noun, telling.quality, telling.far = thread.noun, thread.quality, thread.far
        else:
            telling.first = self._protagonist(name)
            telling.second = self._partner(name, telling.first)
            telling.far = world.far_from(telling.first.home)
            telling.noun, telling.quality = self._noun(name)
        telling.here = telling.first.home

    def _protagonist(self, name: str) -> Person:
        telling, cast = self._telling, self._world.cast
        if name == "courtship":
            single = [p for p in cast if not p.married]
            return self._world.pick(single or cast)
        # the same people return: that is what makes it a chronicle
        if self._random() < 0.5:
            return telling.second if self._random() < 0.5 and telling.second in cast else telling.first
        return self._world.pick(cast)

    def _partner(self, name: str, first: Person) -> Person:
        suitors = [p for p in self._world.cast if not p.married and p.female != first.female]
        if name == "courtship" and suitors:
            return self._world.pick(suitors)
        return self._world.other(first)

    def _noun(self, scene: str) -> tuple[str, str]:
        kind = events.OBJECTS.get(scene)
        if kind is None:
            return "", ""
        return self._draw(kind), self._draw(f"adj_{kind}")

    def _draw(self, rule: str) -> str:
        telling = self._telling
        telling.begin_sentence()
        self._grammar.writer(rule)(telling)
        return "".join(telling.out)

    def _leave_thread(self, name: str) -> None:
        telling = self._telling
        if name == "wedding":
            self._marry(telling.first, telling.second)
        sequel = events.SEQUELS.get(name)
        if sequel:
            due = self._world.scene + 2 + int(self._random() * 9)
            thread = Thread(due, sequel, telling.first, telling.second, telling.noun, telling.quality, telling.far)
            self._world.threads.append(thread)

    @staticmethod
    def _marry(first: Person, second: Person) -> None:
        for person, spouse in ((first, second), (second, first)):
            person.married = True
            person.kin.append(world_tables.Kin("wife" if spouse.female else "husband", spouse.given))
            person.home = first.home

    def _sentences(self, name: str) -> Iterator[str]:
        for index, beat in enumerate(all_scenes()[name]):
            if lines(beat)[0] == "?" and self._random() < 0.5:
                continue
            yield self._sentence(f"scene {name} {index}")
            # the first two beats belong together: what happens, and how
            while index > 0 and self._random() < FILLER_CHANCE:
                filler = self._world.pick(FILLERS)
                if filler == "exchange":
                    yield from self._exchange()
                else:
                    yield self._sentence(filler)

    def _exchange(self) -> Iterator[str]:
        """Some words between the two people of the scene, about one topic."""
        name = self._world.pick(list(talk.TOPICS))
        self._telling.topic = self._draw(talk.TOPICS[name].noun)
        yield self._sentence(f"talk {name} 0")
        yield self._sentence(f"talk {name} 1")
        if self._random() < EXCHANGE_END_CHANCE:
            yield self._sentence(f"talk {name} 2")

    def _sentence(self, pool: str) -> str:
        """A sentence that this stream has not told yet."""
        draws = 0
        while True:
            draws += 1
            text = finish(self._clause(pool if draws <= DRAWS_BEFORE_LONG else "fill_long"))
            if STUTTER.search(text):
                continue
            mark = hashlib.blake2b(text.encode(), digest_size=8).digest()
            if mark not in self._told:
                self._told.add(mark)
                return text

    def _clause(self, pool: str) -> str:
        text = self._draw(pool)
        joinable = len(text) < MAX_COMPOUND_CHARACTERS and '"' not in text and text[-1] != "?"
        if not joinable or self._random() > COMPOUND_CHANCE:
            return text
        conjunction = self._world.pick(CONJUNCTIONS)
        telling = self._telling
        telling.out.clear()
        self._grammar.writer(self._world.pick(COMPOUND_FILLERS))(telling)
        return text + conjunction + "".join(telling.out)

    def _into_paragraphs(self, sentences: Iterator[str]) -> Iterator[list[str]]:
        paragraph: list[str] = []
        for sentence in sentences:
            paragraph.append(sentence)
            breaks = 0.34 if sentence[-1] == '"' or sentence[0] == '"' else 0.1
            if len(paragraph) >= MAX_PARAGRAPH_SENTENCES or self._random() < breaks:
                yield paragraph
                paragraph = []
                # a paragraph does not begin with a pronoun
                self._telling.focus[:] = [None, None]
        if paragraph:
            yield paragraph
        self._telling.focus[:] = [None, None]


class Chronicle:
    """An opened chronicle; ``segments`` never ends."""

    repeats = False
    language = "en"

    def __init__(self, options: ChronicleOptions) -> None:
        self._seed = options.seed
        self.digest = _digest(options.seed)

    def segments(self, stream: int) -> Iterator[str]:
        """Sentences with their leading white space, by seed and stream alone."""
        teller = _Teller(self._seed, stream)
        separator = ""
        while True:
            for paragraph in teller.scene():
                for sentence in paragraph:
                    yield separator + sentence
                    separator = " "
                separator = "\n\n"


def _digest(seed: int) -> str:
    tables = (
        nouns.NOUNS, nouns.MASS, nouns.IRREGULAR_PLURALS, qualities.QUALITIES, qualities.ADVERBS, qualities.VERBS,
        qualities.IRREGULAR_VERBS, qualities.DOUBLING, phrases.VERB_PHRASES, phrases.RULES,
        seasons.SEASON_RULES, seasons.JOINING_RULES, seasons.WEATHERS, daily.FILLERS, talk.TOPICS, all_scenes(),
        trade_tables.TRADES, events.OBJECTS, events.SEQUELS, world_tables.NAMES,
    )  # fmt: skip
    content = json.dumps(["chronicle", VERSION, seed, tables])
    return hashlib.sha256(content.encode()).hexdigest()


def open_chronicle(options: ChronicleOptions, argument: str) -> Chronicle:
    """Open a chronicle.

    Raises:
        ConfigError: something follows the name; a chronicle takes no argument.
    """
    if argument:
        raise ConfigError(f"haystack 'chronicle' takes no argument, but got {argument!r}: use --haystack chronicle.")
    return Chronicle(options)


PLUGIN = HaystackPlugin(
    name="chronicle",
    summary="Endless made-up village chronicle in English; no sentence comes twice.",
    options=ChronicleOptions,
    open=open_chronicle,
    is_made=True,
)
