"""The redactor: keys in use and what looks like one, in headers, addresses, exceptions and logs."""

from __future__ import annotations

import base64
import json
import logging
from urllib.parse import quote

import pytest

from niah import redact as module
from niah.redact import RedactingFormatter, looks_like_key, redact, remember, without_secrets

LOOKS = "sk-proj-abcDEF0123456789_xyz"


@pytest.fixture(autouse=True)
def _forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_secrets", set())


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer abc.def-123456",
        "{'Authorization': 'Bearer abc.def-123456'}",
        '{"x-api-key": "abc.def-123456", "accept": "*/*"}',
        "(b'x-goog-api-key', b'abc.def-123456')",
        "https://example.org/v1beta/models?key=abc.def-123456&page=2",
        "https://example.org/?access_token=abc.def-123456",
        "cannot connect to https://user:abc.def-123456@proxy.example:8080/",
        "Set-Cookie: abc.def-123456",
        "Incorrect API key provided: bearer abc.def-123456",
    ],
)
def test_what_looks_like_a_key(text: str) -> None:
    assert "abc.def-123456" not in redact(text)
    assert "***" in redact(text)


@pytest.mark.parametrize(
    "key", [LOOKS, "AIzaSyA0123456789abcdefghijk", "hf_abcdefghijklmnopqrst", "gsk-0123456789abcdef"]
)
def test_providers_own_shapes(key: str) -> None:
    assert looks_like_key(f"the key is {key}.")
    assert key not in redact(f"Incorrect API key provided: {key}. See the docs.")


@pytest.mark.parametrize(
    "text",
    [
        "The special magic number for Oslo is 7412839.",
        "a task-based desk-top risk-averse mask",
        "https://example.org/v1",
    ],
)
def test_plain_text_stays(text: str) -> None:
    assert redact(text) == text
    assert not looks_like_key(text)


def test_keys_in_use_are_blotted_out_everywhere() -> None:
    remember("hunter2-hunter2")
    assert without_secrets("x hunter2-hunter2 y") == "x *** y"
    assert redact("hunter2-hunter2") == "***"
    # data that merely looks like a key is what a model said, and stays
    assert without_secrets(f"the model said {LOOKS}") == f"the model said {LOOKS}"


def test_a_key_that_is_a_short_word_does_not_blot_out_text() -> None:
    remember("none")
    assert without_secrets("none of the cells") == "none of the cells"


def test_logs_and_their_traces() -> None:
    remember("hunter2-hunter2")
    err = ValueError("refused: Authorization: Bearer hunter2-hunter2")
    record = logging.LogRecord("n", logging.ERROR, "f", 1, "sent %s", ("hunter2-hunter2",), (ValueError, err, None))
    said = RedactingFormatter("%(message)s").format(record)
    assert "hunter2" not in said
    assert "ValueError" in said


KEY = 'aB3-Zz9/k+Q=x"7Yw'


@pytest.mark.parametrize(
    "form",
    [
        KEY,
        KEY.upper(),
        KEY.lower(),
        KEY.swapcase(),
        quote(KEY, safe=""),
        quote(KEY, safe="").lower(),
        json.dumps(KEY)[1:-1],
        base64.b64encode(KEY.encode()).decode(),
        base64.b64encode(f"u:{KEY}".encode()).decode(),
        base64.b64encode(f"user:{KEY}".encode()).decode(),
        base64.urlsafe_b64encode(f"name:{KEY}:more".encode()).decode(),
    ],
)
def test_a_key_in_any_case_and_form(form: str) -> None:
    remember(KEY)
    assert without_secrets("no key at all") == "no key at all"
    found = without_secrets(f"the server said {form} twice: {form}")
    assert form not in found
    assert found.count("***") == 2
    assert form[8:-8] not in found
