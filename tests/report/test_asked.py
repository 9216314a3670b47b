"""What was asked beside what is in force: an alarm where they differ, and none where nothing can."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from niah.backends.transformers.method import Setting, open_running
from niah.backends.transformers.options import TransformersOptions
from niah.backends.transformers.session import HFSession
from niah.engines.base import SessionRequest
from niah.kv.grammar import parse_one
from niah.kv.identity import canonical
from niah.report.data.asked import setting_lines
from tests.helpers import ROOT, tiny_models

RESULTS = ROOT / "results"
SETTINGS = [
    "bf16", "fp16", "int8", "int4", "k8v4", "fp8", "fp8(scales=dynamic)", "fp8_e5m2", "kivi2(8,16)", "int8+skip(0,-1)",
    "kivi4(8,16)+skip(1)", "window(30)", "streaming(sinks=4,window=26)", "gqa(1)", "mqa", "infini(30)",
    "int4(group_size=16)+window(30)",
]  # fmt: skip


def differing(asked: dict[str, Any], effective: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {line.name: (line.asked, line.effective) for line in setting_lines(asked, effective) if line.differs}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_that_is_in_force_raises_no_alarm(name: str) -> None:
    """The setting as a session of the transformers backend reads it back from its own cache."""
    kv, loaded = parse_one(name), tiny_models.llama()
    request = SessionRequest(kv, 100, reuse=True, is_complete=lambda *_: True)
    info: Any = SimpleNamespace(tokenizer=None)
    with open_running(Setting(loaded, kv, tiny_models.shape_of(loaded))) as running, torch.inference_mode():
        cache = running.cache()
        running.prefill(cache, list(range(3, 63)), 0)
        session = HFSession(running, info, TransformersOptions(), request)
        effective = {**session.effective(), **running.effective(cache)}
    assert differing(canonical(kv), json.loads(json.dumps(effective))) == {}


def test_nor_does_any_in_the_published_run() -> None:
    settings = [
        (name, entry)
        for file in RESULTS.glob("*/run.json")
        for name, entry in json.loads(file.read_text(encoding="utf-8"))["settings"].items()
    ]
    assert settings
    assert {name: found for name, entry in settings if (found := differing(entry["asked"], entry["effective"]))} == {}


@pytest.mark.parametrize(
    ("kv", "effective", "field"),
    [
        ("int8", {"kv.k_dtype": "bfloat16"}, "k_dtype"),
        ("int8", {"kv.scales": None}, "scales"),
        ("fp8", {"scales": "checkpoint"}, "scales"),
        ("int4", {"kv.group_size": 64}, "group_size"),
        ("bf16", {"kv.k_dtype": "fp8_e4m3"}, "k_dtype"),
        # no layer of that type, too few skipped, and two types where none is skipped
        ("int8+skip(0,-1)", {"kv.k_dtype": "bf16 (30 layers)"}, "k_dtype"),
        ("int8+skip(0,-1)", {"kv.skip_layers": "0"}, "skip_layers"),
        ("int8", {"kv.k_dtype": "int8 (28 layers), bf16 (2 layers)"}, "k_dtype"),
        ("int8+skip(0)", {"kv.k_dtype": "int8 (28 layers), int4 (2 layers)"}, "k_dtype"),
        ("infini(128)", {"kv.memory": "kv"}, "memory"),
        ("window(512)", {"window": 1024}, "window"),
    ],
)
def test_what_is_not_in_force_is_told(kv: str, effective: dict[str, Any], field: str) -> None:
    assert field in differing(canonical(parse_one(kv)), effective)


def test_scales_at_one_are_unit_scales() -> None:
    assert differing(canonical(parse_one("fp8")), {"scales": "1.0"}) == {}
