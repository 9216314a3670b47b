"""Settings joined by ``+``: what goes together, under which name, and what is refused in which words."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields

import pytest

from niah import registry
from niah.errors import ConfigError
from niah.kv.aspects import _PART_FIELDS
from niah.kv.config import Infini, KVConfig, Placement, Window
from niah.kv.grammar import parse_kv, parse_one
from niah.kv.preset import KVPreset


@pytest.fixture(autouse=True)
def structural(monkeypatch: pytest.MonkeyPatch) -> None:
    """Presets that say something else than a type, as files beside the others would."""

    def heads(kv_heads: int) -> KVConfig:
        return KVConfig("x", kv_heads=kv_heads)

    def window(window: int) -> KVConfig:
        return KVConfig("x", tokens=Window(window))

    def stream(window: int, sinks: int) -> KVConfig:
        return KVConfig("x", tokens=Window(window, sinks))

    def infini(segment: int) -> KVConfig:
        return KVConfig("x", memory=Infini(segment))

    def ranks(n: int) -> KVConfig:
        return KVConfig("x", placement=Placement(context_parallel=n))

    for preset in (
        KVPreset("myheads", "test", heads, {"kv_heads": None}),
        KVPreset("mywindow", "test", window, {"window": None}),
        KVPreset("mystream", "test", stream, {"window": None, "sinks": 4}),
        KVPreset("myinfini", "test", infini, {"segment": 512}),
        KVPreset("myranks", "test", ranks, {"n": 1}),
    ):
        monkeypatch.setitem(registry._from_files, ("kv", preset.name), preset)


def test_every_field_says_one_thing() -> None:
    said = Counter(name for names in _PART_FIELDS.values() for name in names)
    parts = [field.name for kind in (KVConfig, Placement) for field in fields(kind)]
    assert said == Counter(name for name in parts if name not in ("name", "placement"))


def test_parts_add_up_and_the_name_has_one_order() -> None:
    setting = parse_one(" skip(0, -1) + paged(32)+int4(64)+myheads(1)")
    assert setting.name == "myheads(kv_heads=1)+int4(group_size=64)+skip(0,-1)+paged(block_size=32)"
    assert setting == parse_one(setting.name)
    assert (setting.kv_heads, setting.placement.block_size, setting.skip_layers) == (1, 32, (0, -1))
    alone = parse_one("int4(64)")
    assert (setting.keys, setting.values) == (alone.keys, alone.values)


def test_a_list_of_combinations() -> None:
    text = "bf16,k8v4+mywindow(1024),int8+skip(0,1,-1),kivi4(32,128)+skip(sliding_window),INT8+skip(0,1,-1)"
    assert [kv.name for kv in parse_kv(text)] == [
        "bf16",
        "k8v4+mywindow(window=1024)",
        "int8+skip(0,1,-1)",
        "kivi4+skip(sliding_window)",
    ]


def test_16_bit_types_combine_with_what_says_nothing_of_the_type() -> None:
    assert parse_one("fp16+mywindow(8)").keys.element == "fp16"
    assert parse_one("bf16+mywindow(8)").name == "bf16+mywindow(window=8)"
    assert parse_kv("reference+paged", "fp16")[0].name == "fp16+paged"
    # one rank is no change: it says nothing, and nothing speaks against it
    assert parse_one("int8+myranks(1)").name == "int8+myranks"


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("int8+int4", "int8 and int4 both set the stored type; keep one of them"),
        ("bf16+int8", "bf16 and int8 both set the stored type"),
        ("int8+int8", "both set the stored type"),
        ("mywindow(8)+mystream(9)", "both set the window"),
        ("int8+skip(0)+skip(1)", r"skip\(0\) and skip\(1\) both set the layers left in 16 bit"),
        ("skip(0)", r"layers are in 16 bit anyway; skip goes with a quantized type, as in int8\+skip"),
        ("bf16+skip(0)", "16 bit anyway"),
        ("int8+skip", r"skip needs layers; write for instance int8\+skip\(0,-1\)"),
        ("int8+skip()", "skip needs layers"),
        ("int8+skip(layers=0)", "layers have no names"),
        ("int8+skip(first)", "layer numbers .* not 'first'"),
        ("int8+skip(sliding_windows)", "Did you mean 'sliding_window'"),
        ("int8+skip(0,)", "a name is missing between commas"),
        ("int8+", r"a name is missing beside the \+"),
        ("+int8", r"a name is missing beside the \+"),
        ("int8+paged(0)", "block_size is 0"),
        ("int8+nonsense", "no KV setting named 'nonsense'"),
        ("kivi4+mywindow(512)", "would have to cut through such a group; use k8v4 or int4"),
        ("kivi2+myinfini", "cut through"),
        ("myinfini+mywindow(8)", "local segment in place of a window"),
        ("reference+int8", "reference and int8 both set the stored type"),
    ],
)
def test_what_does_not_go_together_is_said(text: str, match: str) -> None:
    with pytest.raises(ConfigError, match=match):
        parse_kv(text)
