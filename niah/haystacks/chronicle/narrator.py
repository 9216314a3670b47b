"""The narrator of a chronicle: refers to people, times and things as prose does, by name first and then by pronoun."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache

from niah.haystacks.chronicle import phrases, seasons, talk
from niah.haystacks.chronicle import trades as trade_tables
from niah.haystacks.chronicle.grammar import FORMS, HE, SHE, THEY, Draft, Grammar, Inflection, Slot
from niah.haystacks.chronicle.lexicon import nouns, qualities
from niah.haystacks.chronicle.scenes import daily, events, village
from niah.haystacks.chronicle.world import Person, Place, Trade, World

FEMALE_FOLK = frozenset(
    {"barmaid", "charwoman", "dairymaid", "laundress", "midwife", "scullion", "seamstress", "spinster", "widow"}
    | {"washerwoman", "wet-nurse"}
)
# sentences since the last mention after which a pronoun would be a riddle
PRONOUN_REACH = 3
# scenes since the last mention after which a reader needs trade and home again
INTRODUCE_AFTER = 25


class Telling(Draft):
    """A scene being told: who takes part, where, about what, and who was named last."""

    __slots__ = (
        "far",
        "first",
        "focus",
        "here",
        "noun",
        "noun_named",
        "quality",
        "scene",
        "second",
        "sentence",
        "topic",
        "world",
    )

    def __init__(self, world: World) -> None:
        super().__init__(world.random)
        self.world = world
        self.first: Person = world.cast[0]
        self.second: Person = world.cast[1]
        self.here: Place = self.first.home
        self.far: Place = world.places[-1]
        self.noun = ""
        self.quality = ""
        self.noun_named = False
        # what an exchange of words is about
        self.topic = ""
        self.scene = 0
        self.sentence = 0
        # the person that "she" and "he" would be taken for, by ``female``
        self.focus: list[Person | None] = [None, None]

    def begin_sentence(self) -> None:
        self.out.clear()
        self.voice = THEY
        self.sentence += 1

    def touch(self, person: Person) -> None:
        """Remember that the person has just been mentioned."""
        self.focus[person.female] = person
        person.last_sentence = self.sentence
        person.last_scene = self.scene

    def clear_to_reader(self, person: Person) -> bool:
        """Whether a pronoun would be understood."""
        return self.focus[person.female] is person and self.sentence - person.last_sentence <= PRONOUN_REACH

    def short_name(self, person: Person) -> str:
        """A name without appositions, fuller where the person has not been named in this scene."""
        chance = self.random()
        if person.last_scene != self.scene:
            if chance < 0.45 or self.scene - person.last_scene > INTRODUCE_AFTER:
                return f"{person.given} {person.surname}"
            if chance < 0.7:
                person.trade_told = self.scene
                return f"{person.given} the {person.trade.title}"
            return person.given
        if chance < 0.25 and person.trade_told == self.scene and self.first.trade is not self.second.trade:
            return f"the {person.trade.title}"
        return person.given


def _role(which: str) -> Callable[[Telling], Person]:
    def first(t: Telling) -> Person:
        return t.first

    def second(t: Telling) -> Person:
        return t.second

    return first if which == "A" else second


def _subject(person_of: Callable[[Telling], Person], eager: float) -> Slot[Telling]:
    def write(t: Telling) -> None:
        person = person_of(t)
        voice = SHE if person.female else HE
        if t.clear_to_reader(person) and t.random() < eager:
            t.out.append(voice.subject)
        elif t.scene - person.last_scene > INTRODUCE_AFTER and t.random() < 0.7:
            person.trade_told = t.scene
            at = "of" if person.trade.workplace in ("house", "yard") else "at"
            t.out.append(f"{person.given} {person.surname}, the {person.trade.title} {at} {person.home.name},")
        else:
            t.out.append(t.short_name(person))
        t.touch(person)
        t.voice = voice

    return write


def _object(person_of: Callable[[Telling], Person]) -> Slot[Telling]:
    def write(t: Telling) -> None:
        person = person_of(t)
        voice = SHE if person.female else HE
        t.out.append(voice.object if t.clear_to_reader(person) else t.short_name(person))
        t.touch(person)

    return write


def _possessive(person_of: Callable[[Telling], Person]) -> Slot[Telling]:
    def write(t: Telling) -> None:
        person = person_of(t)
        voice = SHE if person.female else HE
        t.out.append(voice.possessive if t.clear_to_reader(person) else _genitive(t.short_name(person)))
        t.touch(person)

    return write


def _genitive(name: str) -> str:
    return name + "'s"


def _kin(person_of: Callable[[Telling], Person]) -> Slot[Telling]:
    possessive = _possessive(person_of)

    def write(t: Telling) -> None:
        possessive(t)
        kin = t.world.pick(person_of(t).kin)
        t.out.append(f" {kin.relation} {kin.given}")
        # a pronoun after "his brother Seth" could be either of them
        female = kin.relation in ("sister", "daughter", "wife")
        t.focus[female] = None
        t.voice = SHE if female else HE

    return write


def _said(person_of: Callable[[Telling], Person], usual: str, others: Slot[Telling]) -> Slot[Telling]:
    def write(t: Telling) -> None:
        person = person_of(t)
        voice = SHE if person.female else HE
        known = t.clear_to_reader(person)
        name = "" if known and t.random() < 0.8 else t.short_name(person)
        if t.random() < 0.6:
            verb = usual
        else:
            others(t)
            verb = t.out.pop()
        if not name:
            t.out.append(f"{voice.subject} {verb}")
        elif " " in verb or t.random() < 0.35:
            t.out.append(f"{name} {verb}")
        else:
            t.out.append(f"{verb} {name}")
        t.touch(person)
        t.voice = voice

    return write


def _of(value: Callable[[Telling], str]) -> Slot[Telling]:
    def write(t: Telling) -> None:
        t.out.append(value(t))

    return write


def _thing_with_article(t: Telling) -> None:
    if t.noun_named:
        _thing(t)
        return
    t.noun_named = True
    t.out.append(f"@ {t.quality} {t.noun}")


def _thing(t: Telling) -> None:
    with_quality = not t.noun_named or t.random() < 0.15
    t.noun_named = True
    t.out.append(f"the {t.quality} {t.noun}" if with_quality else f"the {t.noun}")


def _person_slots(letter: str, grammar: Grammar[Telling]) -> dict[str, Slot[Telling]]:
    person = _role(letter)
    return {
        letter: _subject(person, 0.8),
        f"{letter}.he": _subject(person, 1.0),
        f"{letter}.him": _object(person),
        f"{letter}.his": _possessive(person),
        f"{letter}.kin": _kin(person),
        f"{letter}.full": _full_name(person),
        f"{letter}.name": _of(lambda t: person(t).given),
        f"{letter}.trade": _of(lambda t: person(t).trade.title),
        f"{letter}.said": _said(person, "said", grammar.writer("state.d")),
        f"{letter}.asked": _said(person, "asked", grammar.writer("enquire.d")),
    }


def _full_name(person_of: Callable[[Telling], Person]) -> Slot[Telling]:
    def write(t: Telling) -> None:
        person = person_of(t)
        t.out.append(f"{person.given} {person.surname}")
        t.touch(person)

    return write


def _world_slots() -> dict[str, Slot[Telling]]:
    return {
        "him": _of(lambda t: t.voice.object),
        "his": _of(lambda t: t.voice.possessive),
        "himself": _of(lambda t: t.voice.reflexive),
        "v_he": after_man,
        "T": _of(lambda t: t.topic),
        "P": _of(lambda t: t.here.name),
        "Q": _of(lambda t: t.far.name),
        "far": _of(lambda t: t.world.pick(t.world.places).name),
        "inn": _of(lambda t: t.here.inn),
        "river": _of(lambda t: t.here.river),
        "month": _of(lambda t: t.world.month),
        "past_month": _of(lambda t: t.world.past_month),
        "season": _of(lambda t: t.world.season),
        "old_name": _of(lambda t: t.world.stranger_name()),
        "workplace": _of(lambda t: t.first.trade.workplace),
        "O": _of(lambda t: t.noun),
        "O.a": _thing_with_article,
        "O.the": _thing,
    }


def _switching_slots(grammar: Grammar[Telling]) -> dict[str, Slot[Telling]]:
    """Slots that go to another rule by season, weather or the first person's trade."""
    skies = {weather: grammar.writer(f"sky_{weather}") for weather in ("dry", "wet", "cold", "hot", "wild")}
    weathers = {weather: grammar.writer(f"weather_{weather}") for weather in skies}
    nature = {season: grammar.writer(f"nature_{season}") for season in seasons.SEASONS}
    slots: dict[str, Slot[Telling]] = {
        "sky": lambda t: skies[t.world.weather](t),
        "weather": lambda t: weathers[t.world.weather](t),
        "nature": lambda t: nature[t.world.season](t),
    }
    for form in FORMS:
        suffix = "" if form == "base" else f".{form}"
        slots[f"task{suffix}"] = _by_trade(grammar, suffix)
        slots[f"work{suffix}"] = _by_season(grammar, suffix)
    return slots


def _by_trade(grammar: Grammar[Telling], suffix: str) -> Slot[Telling]:
    tasks = {trade.tasks: grammar.writer(trade.tasks + suffix) for trade in trades()}

    def write(t: Telling) -> None:
        tasks[t.first.trade.tasks](t)

    return write


def _by_season(grammar: Grammar[Telling], suffix: str) -> Slot[Telling]:
    work = {season: grammar.writer(f"{season}_work{suffix}") for season in seasons.SEASONS}

    def write(t: Telling) -> None:
        work[t.world.season](t)

    return write


@cache
def trades() -> tuple[Trade, ...]:
    """All trades, in the order of their table."""
    rows = (line.split("|") for line in trade_tables.TRADES.strip().splitlines())
    return tuple(Trade(title, workplace, f"task_{title.replace(' ', '_')}") for title, workplace, _ in rows)


def lines(text: str) -> list[str]:
    """Templates of a block, one a line."""
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def alternatives(text: str) -> list[str]:
    """Alternatives of a rule, parted by ``|``."""
    return [" ".join(a.split()) for a in re.split(r"\|(?![^\[]*\])", text)]


def after_group(t: Telling) -> None:
    """A group is spoken of as "they" from here on."""
    t.voice = THEY


def after_man(t: Telling) -> None:
    """An unnamed man, such as an officer, becomes the subject."""
    t.voice = HE
    t.focus[False] = None


def after_folk(t: Telling) -> None:
    """Someone unnamed becomes the subject; "he" or "she" may now mean that person."""
    female = t.out[-1] in FEMALE_FOLK
    t.voice = SHE if female else HE
    t.focus[female] = None


def _expanded(table: Mapping[str, str], words: str) -> str:
    """Words of a table in which ``@name`` stands for all words of another one."""
    return " ".join(_expanded(table, table[word[1:]]) if word[0] == "@" else word for word in words.split())


@cache
def grammar() -> Grammar[Telling]:
    """The compiled grammar with every table, rule and scene: some hundredths of a second, once per process."""
    inflection = Inflection(qualities.IRREGULAR_VERBS, qualities.DOUBLING, nouns.IRREGULAR_PLURALS)
    made: Grammar[Telling] = Grammar(inflection)
    # tables and slots come first: templates resolve their names when they are compiled
    _add_tables(made)
    made.add_slots(_world_slots())
    for letter in "AB":
        made.add_slots(_person_slots(letter, made))
    _add_verbs(made)
    made.add_slots(_switching_slots(made))
    made.after("group", after_group)
    made.after("folk_a", after_folk)
    _add_rules(made)
    return made


def _add_tables(made: Grammar[Telling]) -> None:
    for table in (nouns.NOUNS, nouns.MASS, qualities.QUALITIES, qualities.ADVERBS):
        for name, words in table.items():
            made.add_words(name, _expanded(table, words))
    made.add_words("month_any", " ".join(seasons.MONTHS))


def _add_verbs(made: Grammar[Telling]) -> None:
    for name, words in qualities.VERBS.items():
        made.add_verbs(name, [verb.replace("_", " ") for verb in words.split()])
    for name, words in phrases.VERB_PHRASES.items():
        made.add_verbs(name, lines(words))
    for trade, row in zip(trades(), trade_tables.TRADES.strip().splitlines(), strict=True):
        made.add_verbs(trade.tasks, row.split("|")[2].split(";"))


def _add_rules(made: Grammar[Telling]) -> None:
    for rules in (phrases.RULES, seasons.JOINING_RULES):
        for name, text in rules.items():
            made.add_rule(name, alternatives(text))
    for pools in (seasons.SEASON_RULES, daily.FILLERS):
        for name, text in pools.items():
            made.add_rule(name, lines(text))
    for name, topic in talk.TOPICS.items():
        for index, block in enumerate((topic.opening, topic.reply, topic.end)):
            made.add_rule(f"talk {name} {index}", lines(block))
    for name, beats in all_scenes().items():
        for index, beat in enumerate(beats):
            made.add_rule(f"scene {name} {index}", [line for line in lines(beat) if line != "?"])


@cache
def all_scenes() -> Mapping[str, tuple[str, ...]]:
    """Beats of every scene by the scene's name."""
    return {**daily.DAILY, **events.EVENTS, **village.VILLAGE}
