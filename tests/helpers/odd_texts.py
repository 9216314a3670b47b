"""Texts that are no sentences: each of some 40,000 characters, made anew from a fixed seed."""

from __future__ import annotations

import base64
import string
from collections.abc import Callable
from random import Random

_CHARACTERS = 40_000
_THAI = (
    "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ ต่างมีเหตุผลและมโนธรรม และควรปฏิบัติต่อกันด้วยเจตนารมณ์แห่งภราดรภาพ "
    "ทุกคนย่อมมีสิทธิและอิสรภาพทั้งปวงตามที่กำหนดไว้ในปฏิญญานี้ โดยปราศจากความแตกต่างไม่ว่าชนิดใด"
)
_KHMER = "មនុស្សទាំងអស់កើតមកមានសេរីភាពនិងសមភាពក្នុងផ្នែកសេចក្ដីថ្លៃថ្នូរនិងសិទ្ធិ"
_BURMESE = "လူတိုင်းသည်တူညီလွတ်လပ်သောဂုဏ်သိက္ခာဖြင့်လည်းကောင်းမွေးဖွားလာသူများဖြစ်သည်"
_LAO = "ມະນຸດເກີດມາມີສິດເສລີພາບແລະສະເໝີໜ້າກັນໃນທາງກຽດຕິສັກແລະທາງສິດດ້ວຍມະນຸດມີສະຕິສຳປັດຊັນຍະ"
_HINDI = "सभीमनुष्योंकोगौरवऔरअधिकारोंकेमामलेमेंजन्मजातस्वतन्त्रताऔरसमानताप्राप्तहै"
_FAMILY = "👨\u200d👩\u200d👧\u200d👦"
_WORDS = (
    "the",
    "of",
    "and",
    "river",
    "letter",
    "market",
    "harvest",
    "bridge",
    "widow",
    "orchard",
    "lantern",
    "winter",
    "carried",
)


def _cycle(text: str) -> Callable[[Random], str]:
    return lambda rng: text * (_CHARACTERS // len(text))


def _drawn(*pieces: str, joint: str = "") -> Callable[[Random], str]:
    def make(rng: Random) -> str:
        count = _CHARACTERS * len(pieces) // sum(map(len, pieces))
        return joint.join(rng.choice(pieces) for _ in range(count))

    return make


def _clauses(rng: Random) -> str:
    """Chinese with a comma now and then and no full stop."""
    return "".join(chr(rng.randrange(0x4E00, 0x9FA5)) + "，" * (rng.random() < 0.05) for _ in range(20_000))


def _long_sentences(rng: Random) -> str:
    sizes = (rng.choice([5, 8, 500]) for _ in range(60))
    return " ".join(f"Then {' '.join(rng.choice(_WORDS) for _ in range(size))}." for size in sizes)


def _table(rng: Random) -> str:
    lines = (f"{rng.choice(_WORDS)},{rng.randrange(10**6)},{rng.random():.3f}" for _ in range(2500))
    return "\n".join(lines)


def _hangul(rng: Random) -> str:
    starts = ((0x1100, 19), (0x1161, 21), (0x11A8, 27))
    return "".join(chr(first + rng.randrange(count)) for _ in range(6000) for first, count in starts)


_MAKERS: dict[str, Callable[[Random], str]] = {
    "letters": _drawn(*string.ascii_lowercase),
    "one letter": _cycle("a"),
    "digits": _drawn(*string.digits),
    "base64": lambda rng: base64.b64encode(rng.randbytes(30_000)).decode(),
    "thai": _drawn(*_THAI.split(), joint=" "),
    "thai without blanks": _drawn(*_THAI.split()),
    "khmer": _cycle(_KHMER),
    "burmese": _cycle(_BURMESE),
    "lao": _cycle(_LAO),
    "hindi without blanks": _cycle(_HINDI),
    "chinese clauses": _clauses,
    "hangul letters": _hangul,
    "accents": _drawn("a", "e\u0301", "o\u0308\u0323", "i", "u\u0301"),
    "emoji": _drawn(_FAMILY, "👍🏽", "🇩🇪", "🇫🇷", "❤\ufe0f", "a"),
    "flags": _drawn("🇩🇪", "🇫🇷", "🇪🇸"),
    "code": lambda rng: " ".join(f"if(a[{n}]==b.c{n}){{x+=f({rng.randrange(99)},y);}}" for n in range(1500)),
    "table": _table,
    "poetry": lambda rng: "\n".join(" ".join(rng.choice(_WORDS) for _ in range(7)) for _ in range(900)),
    "one word": _cycle("buffalo "),
    "rules": _cycle("=" * 60),
    "long sentences": _long_sentences,
}
NAMES = tuple(_MAKERS)
# texts whose words have blanks between them
WORDY = ("poetry", "one word", "long sentences", "table", "code")


def odd_text(name: str) -> str:
    """One of the texts."""
    return _MAKERS[name](Random(name))
