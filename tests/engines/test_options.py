"""Options of backends: what they put into the identity of a cell, and their former names."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from niah import registry
from niah.config import validate
from niah.errors import ConfigError

# of the defaults, as they were when cells of these backends were first stored: a change would ask all of them again
IDENTITIES = {
    "oracle": "1cf10e3d5b424fb6",
    "fake": "07980dfacaab1641",
    "openai": "ed97096ab6944a01",
    "anthropic": "11b8d94c6dfec9bd",
    "gemini": "be652996919c43ae",
    "llamacpp": "1793c3a9a0a4d582",
    "vllm": "7c34d5defc06b508",
    "vllm-server": "b1fd34f0677ae581",
    "transformers": "91b88ddee165a79b",
}


def _options(backend: str, **values: Any) -> Any:
    return validate(registry.load("backends", backend).options, values, "backend")


@pytest.mark.parametrize("backend", IDENTITIES)
def test_the_identity_of_defaults_stays(backend: str) -> None:
    identity = json.dumps(_options(backend).identity(), sort_keys=True)
    assert hashlib.sha256(identity.encode()).hexdigest()[:16] == IDENTITIES[backend], identity


@pytest.mark.parametrize(
    ("backend", "former", "name", "value"),
    [
        ("vllm", "trust_me", "skip_checks", True),
        ("vllm-server", "trust_me", "skip_checks", True),
        ("vllm-server", "allow_remote", "allow_remote_http", True),
        ("openai", "prefill", "assistant_prefill", "on"),
        ("anthropic", "prefill", "assistant_prefill", "on"),
        ("gemini", "prefill", "assistant_prefill", "off"),
    ],
)
def test_a_former_name_is_taken(backend: str, former: str, name: str, value: Any) -> None:
    old, new = _options(backend, **{former: value}), _options(backend, **{name: value})
    assert old == new
    assert getattr(old, name) == value
    assert name in old.model_fields_set
    assert old.identity() == new.identity()
    assert name not in old.identity()
    assert old.identity().get(former, value) == value
    # what is stored now is read again
    assert _options(backend, **old.model_dump(mode="json")) == old
    with pytest.raises(ConfigError, match=f"{former} is the former name of {name}"):
        _options(backend, **{former: value, name: value})
    with pytest.raises(ConfigError, match="unknown key"):
        _options(backend, **{former + "s": value})
