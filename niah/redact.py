"""One redactor for everything that is printed, logged or stored: keys that are in use, and whatever looks like one."""

from __future__ import annotations

import base64
import json
import logging
import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from urllib.parse import quote, quote_plus

MASK = "***"
# a shorter "secret" would redact ordinary words of a run's rows
_SHORTEST = 6
_secrets: set[str] = set()

# sk-…, AIza…, hf_… and the like: the well-known shapes of providers' keys
_KEY = r"(?:sk|pk|rk|gsk|xai|r8)-[A-Za-z0-9_\-]{12,}|AIza[A-Za-z0-9_\-]{20,}|hf_[A-Za-z0-9]{16,}|ghp_[A-Za-z0-9]{20,}"
_KEY_VALUE = re.compile(rf"(?<![A-Za-z0-9])(?:{_KEY})")
_HEADER = re.compile(
    r"(?i)(\b(?:proxy-)?authorization\b|\bx-api-key\b|\bx-goog-api-key\b|\bapi-key\b|\b(?:set-)?cookie\b)"
    r"(['\"]?\s*[:=,]\s*(?:b(?=['\"]))?['\"]?)(?:(bearer|basic)\s+)?[^\s'\",;}\]]+"
)
_BEARER = re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=\-]{6,}")
_QUERY = re.compile(r"(?i)([?&](?:[a-z_\-]*key|[a-z_\-]*token|password|secret|signature|sig)=)[^&\s'\"#]+")
_USER = re.compile(r"(?i)\b([a-z][a-z0-9+.\-]*://)[^/\s:@'\"]*:[^/\s@'\"]+@")


def remember(secret: str) -> None:
    """Redact this value from now on, wherever it would be shown or written."""
    if len(secret) >= _SHORTEST:
        _secrets.add(secret)


@lru_cache(maxsize=4)
def _pattern(secrets: frozenset[str]) -> re.Pattern[str] | None:
    """All keys in use, in whatever case and in the forms that a server or a file may give them."""
    forms = sorted({form for secret in secrets for form in _forms(secret)}, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, forms)), re.IGNORECASE) if forms else None


def _forms(secret: str) -> Iterator[str]:
    yield secret
    yield quote(secret, safe="")
    yield quote_plus(secret)
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    data = secret.encode("utf-8", "replace")
    for skipped in range(3):
        # base64 of a longer text: what the characters around it decide is left off at both ends
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            whole = encode(b"\0" * skipped + data).decode().rstrip("=")
            first = (0, 2, 3)[skipped]
            last = (skipped + len(data)) * 8 // 6
            if last - first >= _SHORTEST:
                yield whole[first:last]


def looks_like_key(text: str) -> bool:
    """Whether a text holds something in the well-known shape of a provider's key."""
    return _KEY_VALUE.search(text) is not None


def without_secrets(text: str) -> str:
    """The text without the keys in use. Safe for data: what merely looks like a key stays as it is."""
    pattern = _pattern(frozenset(_secrets))
    return text if pattern is None else pattern.sub(MASK, text)


def redact(text: str) -> str:
    """The text without keys in use, and without what looks like one: headers, addresses with a password, queries."""
    text = without_secrets(text)
    text = _USER.sub(rf"\1{MASK}@", text)
    text = _QUERY.sub(rf"\1{MASK}", text)
    text = _HEADER.sub(rf"\1\2{MASK}", text)
    text = _BEARER.sub(rf"\1 {MASK}", text)
    return _KEY_VALUE.sub(MASK, text)


def printable(text: str, *, lines: bool = False) -> str:
    """The text with every character that is not shown itself as an escape: ``\\x1b``, ``\\u202e``, ``\\ud800``.

    What a model, a server or a file says may hold control characters, which steer a terminal, marks that turn the
    reading direction, and halves of surrogate pairs, which no output can hold.

    Args:
        lines: keep line breaks and tabs.
    """
    kept = "\n\t" if lines else ""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in kept or unicodedata.category(char) == "Zs" else _escape(char)
        for char in text
    )


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


class RedactingFormatter(logging.Formatter):
    """Formats a record, its exception and its trace, and redacts the whole."""

    def format(self, record: logging.LogRecord) -> str:
        return redact(super().format(record))
