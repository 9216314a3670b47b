"""A setting whose preset asks for what no backend declares: all of them refuse it, and nothing is run."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from niah import registry
from niah.kv.grammar import parse_one
from niah.models.shape import ModelShape
from niah.types import Host
from tests.helpers.command import Said

EVICTION = """
from dataclasses import dataclass
from typing import ClassVar

from niah.plugins import Extra, KVConfig, KVPreset


@dataclass(frozen=True, slots=True)
class Eviction(Extra):
    aspect: ClassVar[str] = "key_norm_eviction"
    share: float

    def kept(self, tokens):
        return round(tokens * self.share)


PLUGIN = KVPreset(
    "evict", "keeps keys of a small norm", lambda share: KVConfig("evict", extras=(Eviction(share),)), {"share": 0.5}
)
"""
METHOD = """
from niah.plugins import Method, Running

PLUGIN = Method(
    "evict", "keeps all", applies=lambda kv: False, running=Running, aspects=frozenset({"key_norm_eviction"})
)
"""
BACKENDS = registry.names("backends")
HOSTED = ("openai", "anthropic", "gemini")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "evict.py"
    path.write_text(EVICTION)
    return path


@pytest.mark.parametrize("kv", ["evict", "evict(share=0.25)", "int8+evict"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_every_backend_refuses(file: Path, backend: str, kv: str, smollm2_folder: Path) -> None:
    registry.add_file(file)
    plugin = registry.load("backends", backend)
    shape = ModelShape.from_folder(smollm2_folder)
    reasons = [problem.reason for problem in plugin.problems(plugin.options(), parse_one(kv), shape, Host())]
    if backend in HOSTED:
        assert any("so no setting of it can be asked for" in reason for reason in reasons), reasons
    else:
        assert f"the backend {backend!r} has no key_norm_eviction" in reasons


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_plan_says_so(niah: Callable[..., Said], file: Path, backend: str) -> None:
    model = ("--model", "some-model") if backend in HOSTED else ()
    said = niah("plan", "--plugin", file, "--backend", backend, *model, "--kv", "evict", "--lengths", "512")
    assert said.code == 2, said
    if backend == "vllm" and find_spec("vllm") is None:
        assert "the backend 'vllm' needs the package 'vllm'" in said.err
    elif backend in HOSTED:
        assert "refused     kv 'evict': a model behind an API shows nothing of its KV cache" in said.out
    else:
        assert f"refused     kv 'evict': the backend {backend!r} has no key_norm_eviction." in said.out


def test_nothing_is_run(niah: Callable[..., Said], file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    said = niah("run", "--plugin", file, "--backend", "oracle", "--kv", "evict", "--lengths", "512", "--out", out)
    assert (said.code, out.exists()) == (2, False)
    assert "the backend 'oracle' has no key_norm_eviction" in said.err


def test_a_method_that_declares_it_is_believed(file: Path, tmp_path: Path, smollm2_folder: Path) -> None:
    registry.add_file(file)
    method = tmp_path / "method.py"
    method.write_text(METHOD)
    registry.add_file(method)
    shape = ModelShape.from_folder(smollm2_folder)
    for backend in BACKENDS:
        plugin = registry.load("backends", backend)
        problems = plugin.problems(plugin.options(), parse_one("evict"), shape, Host())
        assert (not problems) == (backend == "transformers"), (backend, problems)


def test_bytes_are_those_that_the_setting_says(niah: Callable[..., Said], file: Path) -> None:
    rows = niah("memory", "--plugin", file, "--kv", "bf16,evict,int8+evict", "--lengths", "4k", "--json").document()
    held = {row["kv"]: row["allocated_bytes"] for row in rows["rows"]}
    assert held["evict"] * 2 == held["bf16"]


FORMAT = """
from niah.backends.transformers.formats.int4 import TokenGroups
from niah.plugins import CacheFormat

PLUGIN = CacheFormat(
    "rival", "int4 once more", frozenset({("int4", "group_token")}), codec=lambda its: TokenGroups(4, its.group_size)
)
"""


def test_a_pair_that_two_formats_store_is_refused(niah: Callable[..., Said], tmp_path: Path) -> None:
    rival = tmp_path / "rival.py"
    rival.write_text(FORMAT)
    said = niah("plan", "--plugin", rival, "--kv", "int4", "--lengths", "512")
    assert said.code == 2
    assert "the stored formats int4 and rival both store int4 in the layout 'group_token'" in said.out
    assert niah("plan", "--plugin", rival, "--kv", "int8", "--lengths", "512").code == 0
