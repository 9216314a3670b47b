"""A small template grammar: compiles tables and templates once, then writes sentences into a ``Draft``.

Templates know ``{name}`` (a table or rule), ``{name.d}`` (past), ``{name.ing}``, ``{name.en}`` (participle),
``{name.pl}`` (plural), ``{C name}`` (capitalised), ``{a}`` (a or an), ``[this|that]``
(one of), and slots that the caller supplies.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar, Union

FORMS = ("base", "d", "en", "ing")
_SLOT = re.compile(r"\{([^{}]+)\}")
_INLINE = re.compile(r"\[([^\[\]]*)\]")
_VERB = re.compile(r"\*?([a-z-]+)(.*)", re.DOTALL)
_VOWEL_SOUND = re.compile(r"(?!(?:one|once|uni|use|usu|ewe|eu))(?:[aeiou]|hour|honest|heir)", re.IGNORECASE)
_ARTICLE = re.compile(r"@ (?=(\w[\w-]*))")
_LETTER = re.compile(r"[^\W\d_]")
_PRONOUN_WORDS = re.compile(r"\b(I|you|we|they|nobody|somebody|everybody|whoever|children)\b")


@dataclass(frozen=True, slots=True)
class Voice:
    """The pronouns that follow a subject."""

    subject: str
    object: str
    possessive: str
    reflexive: str


HE = Voice("he", "him", "his", "himself")
SHE = Voice("she", "her", "her", "herself")
THEY = Voice("they", "them", "their", "themselves")
_LITERAL_VOICES = {
    "I": Voice("I", "me", "my", "myself"),
    "you": Voice("you", "you", "your", "yourself"),
    "we": Voice("we", "us", "our", "ourselves"),
}


class Draft:
    """A sentence on its way: pieces so far, the subject's pronouns and the source of chance."""

    __slots__ = ("out", "random", "voice")

    def __init__(self, random: Callable[[], float]) -> None:
        self.out: list[str] = []
        self.random = random
        self.voice = THEY


D = TypeVar("D", bound=Draft)
Slot: TypeAlias = Callable[[D], None]
Part: TypeAlias = Union[str, Callable[[D], None]]
Template: TypeAlias = tuple[Union[str, Callable[[D], None]], ...]


class Inflection:
    """English inflection by rule, with tables of exceptions."""

    def __init__(self, verbs: str, doubling: str, plurals: Mapping[str, str]) -> None:
        entries = (entry.split() for entry in re.split(r"[;\n]", verbs) if entry.strip())
        self._verbs = {words[0]: (words[1], words[-1]) for words in entries}
        self._doubling = frozenset(doubling.split())
        self._plurals = plurals

    def plural(self, noun: str) -> str:
        if noun in self._plurals:
            return self._plurals[noun]
        if re.search(r"(s|x|z|ch|sh)$", noun):
            return noun + "es"
        if re.search(r"[^aeiou]y$", noun):
            return noun[:-1] + "ies"
        return noun + "s"

    def verb(self, base: str, form: str) -> str:
        """One of FORMS of a verb: ``verb("mow", "en") == "mown"``."""
        if form == "base":
            return base
        if form == "ing":
            return self._gerund(base)
        if base in self._verbs:
            return self._verbs[base][form == "en"]
        if base.endswith("e"):
            return base + "d"
        if re.search(r"[^aeiou]y$", base):
            return base[:-1] + "ied"
        return self._doubled(base) + "ed"

    def _gerund(self, base: str) -> str:
        if base.endswith("ie"):
            return base[:-2] + "ying"
        if base.endswith("e") and not base.endswith(("ee", "oe", "ye")):
            return base[:-1] + "ing"
        return self._doubled(base) + "ing"

    def _doubled(self, base: str) -> str:
        one_syllable = re.fullmatch(r"(?:[^aeiou]*|s?qu)[aeiouy][bdfgklmnprtz]", base)
        return base + base[-1] if one_syllable or base in self._doubling else base


class Grammar(Generic[D]):
    """Compiled tables, rules and verb phrases."""

    def __init__(self, inflection: Inflection) -> None:
        self._inflection = inflection
        self._slots: dict[str, Slot[D]] = {}
        self._pools: dict[str, list[Template[D]]] = {}
        self._subjects: dict[str, Slot[D]] = {}
        self._writers: dict[str, Slot[D]] = {}

    def add_slots(self, slots: Mapping[str, Slot[D]]) -> None:
        """Slots that the caller writes; to be added before templates that use them."""
        self._slots.update(slots)

    def add_words(self, name: str, words: str) -> None:
        """A table of nouns, adjectives or adverbs; its plurals come along."""
        table = [w.partition(":")[0].replace("_", " ") for w in words.split()]
        self._slots[name] = _from_table(table)
        self._slots[name + ".pl"] = _from_table([self._inflection.plural(w) for w in table])

    def add_verbs(self, name: str, phrases: Iterable[str]) -> None:
        """Verb phrases, available in all FORMS."""
        lines = [" ".join(p.split()) for p in phrases]
        for form in FORMS:
            key = name if form == "base" else f"{name}.{form}"
            self._pool(key).extend(self.compile(self._inflect(line, form)) for line in lines)

    def add_rule(self, name: str, alternatives: Iterable[str]) -> None:
        """A rule: one of the alternatives is written."""
        self._pool(name).extend(self.compile(a) for a in alternatives)

    def after(self, name: str, action: Slot[D]) -> None:
        """Run ``action`` whenever the rule has been written, for rules that name a new subject."""
        self._subjects[name] = action

    def compile(self, template: str) -> Template[D]:
        """Parts of a template: literals and slots. Slots may be defined later."""
        template = _INLINE.sub(self._inline, template)
        parts: list[Part[D]] = []
        position = 0
        for match in _SLOT.finditer(template):
            parts.extend(self._literal(template[position : match.start()]))
            parts.append(self._writer(match[1]))
            position = match.end()
        parts.extend(self._literal(template[position:]))
        return tuple(parts)

    def undefined(self) -> list[str]:
        """Names used in templates that nothing defines."""
        return sorted(n for n in self._writers if n != "a" and n not in self._slots and not self._pools.get(n))

    def unused(self) -> list[str]:
        """Names of rules and tables that no template uses in any form."""
        used = {n.partition(".")[0] for n in self._writers}
        known = {n.partition(".")[0] for n in (*self._pools, *self._slots)}
        return sorted(known - used)

    def writer(self, name: str) -> Slot[D]:
        """What writes a slot, looked up when it is first used."""
        return self._writer(name)

    def _inline(self, match: re.Match[str]) -> str:
        """The alternatives of ``[a|b]`` become a rule of their own, named after themselves."""
        name = "any of " + match[1].replace("{", "<").replace("}", ">")
        if not self._pool(name):
            self.add_rule(name, match[1].split("|"))
        return "{" + name + "}"

    def _pool(self, name: str) -> list[Template[D]]:
        return self._pools.setdefault(name, [])

    def _literal(self, text: str) -> list[Part[D]]:
        parts: list[Part[D]] = []
        for piece in _PRONOUN_WORDS.split(text):
            if piece:
                parts.append(piece)
            if _PRONOUN_WORDS.fullmatch(piece):
                parts.append(_set_voice(_LITERAL_VOICES.get(piece, THEY)))
        return parts

    def _inflect(self, phrase: str, form: str) -> str:
        words = phrase.split(" ")
        for i, word in enumerate(words):
            if i == 0 or word.startswith("*"):
                words[i] = self._inflection.verb(word.lstrip("*"), form)
        return " ".join(words)

    def _writer(self, name: str) -> Slot[D]:
        if name.startswith("C "):
            return _capitalised(self._writer(name[2:]))
        if name in self._writers:
            return self._writers[name]
        if name == "a":
            made: Slot[D] = _article
        elif name in self._slots:
            made = self._slots[name]
        else:
            made = self._rule(name)
        self._writers[name] = made
        return made

    def _rule(self, name: str) -> Slot[D]:
        # the list is shared with add_rule, so that rules may be used before they are defined
        pool = self._pool(name)
        subjects = self._subjects

        def write(draft: D) -> None:
            voice = draft.voice
            out = draft.out
            for part in pool[int(draft.random() * len(pool))]:
                if isinstance(part, str):
                    out.append(part)
                else:
                    part(draft)
            draft.voice = voice
            if name in subjects:
                subjects[name](draft)

        return write


def _from_table(table: Sequence[str]) -> Slot[Draft]:
    size = len(table)

    def write(draft: Draft) -> None:
        draft.out.append(table[int(draft.random() * size)])

    return write


def _set_voice(voice: Voice) -> Slot[Draft]:
    def write(draft: Draft) -> None:
        draft.voice = voice

    return write


def _capitalised(inner: Slot[D]) -> Slot[D]:
    def write(draft: D) -> None:
        start = len(draft.out)
        inner(draft)
        text = "".join(draft.out[start:])
        draft.out[start:] = [_capital(text)]

    return write


def _article(draft: Draft) -> None:
    draft.out.append("@")


def _capital(text: str) -> str:
    # an article mark is not a letter yet: "@ owl" must become "An owl"
    if text.startswith("@ "):
        word = text[2:]
        return ("An " if _VOWEL_SOUND.match(word) else "A ") + word
    return _LETTER.sub(lambda m: m[0].upper(), text, count=1)


def finish(text: str) -> str:
    """Articles, capital, commas and closing point of a raw clause."""
    if "@" in text:
        if text.startswith(("@", '"@')):
            head = text.index("@")
            text = text[:head] + _capital(text[head:])
        text = _ARTICLE.sub(lambda m: "an " if _VOWEL_SOUND.match(m[1]) else "a ", text)
    if not text[0].isupper():
        text = _capital(text)
    # an apposition ends in a comma, which yields to what follows it
    text = text.replace(",,", ",").replace(",;", ";").replace(",.", ".").rstrip(",")
    if text[-1] == '"':
        return text if text[-2] in ".?!" else text[:-1] + '."'
    return text if text[-1] in ".?!" else text + "."
