"""KV settings as text: lists, arguments, canonical names, and what is said when one is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from niah import registry
from niah.errors import ConfigError
from niah.kv.config import KVConfig, Window
from niah.kv.formats import Grouped, Plain, TensorScale, TokenHead
from niah.kv.grammar import parse_kv, parse_one, reference_for, resolved, split_settings
from niah.kv.preset import KVPreset

PRESETS: tuple[str, ...] = (
    "auto",
    "bf16",
    "fp16",
    "fp8_e4m3",
    "fp8_e5m2",
    "int4",
    "int8",
    "k8v4",
    "kivi2",
    "kivi4",
    "paged",
)
PRESETS += ("hqq4", "hqq8", "nvfp4", "quanto2", "quanto4")


@pytest.fixture
def streaming(monkeypatch: pytest.MonkeyPatch) -> None:
    """A preset with a required argument, as a user's plugin file would add it."""

    def make(window: int, sinks: int) -> KVConfig:
        return KVConfig("x", tokens=Window(window, sinks))

    preset = KVPreset("mystream", "test", make, {"window": None, "sinks": 4})
    monkeypatch.setitem(registry._from_files, ("kv", "mystream"), preset)


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_loads_and_keeps_its_name(name: str) -> None:
    assert name in registry.names("kv")
    preset = registry.load("kv", name)
    assert preset.name == name
    assert preset.summary
    setting = parse_one(name)
    assert setting.name == name
    assert hash(setting) == hash(parse_one(name))


def test_names_with_hyphens_are_found_in_both_spellings() -> None:
    assert parse_one("tq-k8v4") == parse_one("TQ_K8V4")
    assert parse_one("tq_3bit").name == registry.load("kv", "tq-3bit").name == "tq-3bit"


def test_no_support_module_is_taken_for_a_preset() -> None:
    for name in registry.names("kv"):
        assert isinstance(registry.load("kv", name), KVPreset)


def test_what_the_presets_ask_for() -> None:
    int8, int4 = parse_one("int8"), parse_one("int4")
    assert int8.keys == int8.values == TokenHead("int8")
    assert int4.keys == int4.values == Grouped("int4", 32, symmetric=False)
    assert parse_one("fp8").keys == TensorScale("fp8_e4m3", "unit")
    assert parse_one("fp8(scales=dynamic)").values == TokenHead("fp8_e4m3")
    assert parse_one("auto").keys == Plain("auto")


def test_lists_respect_parentheses() -> None:
    text = "bf16, int8,streaming(sinks=4,window=512) ,int4(64)"
    assert split_settings(text) == ["bf16", "int8", "streaming(sinks=4,window=512)", "int4(64)"]
    assert [kv.name for kv in parse_kv("bf16,int4(64),fp8")] == ["bf16", "int4(group_size=64)", "fp8_e4m3"]


def test_a_setting_named_twice_is_one() -> None:
    names = [kv.name for kv in parse_kv("int8,int4,INT8,int4(32),int4( group_size = 32 )")]
    assert names == ["int8", "int4"]


def test_reference_stands_for_the_models_own_type() -> None:
    assert [kv.name for kv in parse_kv("reference,bf16,fp16", "fp16")] == ["fp16", "bf16"]
    assert reference_for("bf16") == parse_one("bf16")
    with pytest.raises(ConfigError, match="'fp32' is no 16-bit type"):
        reference_for("fp32")
    (left_open,) = parse_kv("reference+paged")
    assert resolved(left_open, "fp16") == parse_one("fp16+paged")
    with pytest.raises(ConfigError, match="this model shows none"):
        resolved(left_open, None)


def test_only_changed_arguments_are_in_the_name(streaming: None) -> None:
    assert parse_one("int4(group_size=32)").name == "int4"
    assert parse_one("int4(group_size=64)") == parse_one("int4(64)")
    assert parse_one("mystream(512)").name == "mystream(window=512)"
    assert parse_one("mystream(sinks=8,window=512)").name == "mystream(window=512,sinks=8)"
    assert parse_one("mystream(512, sinks=4)").tokens == Window(512, 4)
    assert parse_one(parse_one("mystream(512,8)").name) == parse_one("mystream(512,8)")


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("int9", "no KV setting named 'int9'. Did you mean 'int[84]'"),
        ("fp8_e4m", "Did you mean 'fp8_e4m3'"),
        ("in t8", "is not a KV setting"),
        ("int4(group_size=64", "parentheses do not pair"),
        ("int4)", "parentheses do not pair"),
        ("int8,,int4", "a name is missing"),
        ("", "a name is missing"),
        ("int8,", "a name is missing"),
        ("kivi4(group_size=33)", "packs 2 elements to a byte: group_size 33 must be a multiple of 2"),
        ("kivi2(group_size=30)", "packs 4 elements to a byte"),
        ("kivi4(residual=100)", "residual 100 must be a positive multiple of 32, for instance 128"),
        ("kivi4(32,0)", "residual 0 must be a positive multiple"),
        ("k8v4(foo=1)", "no argument 'foo'; k8v4 takes group_size"),
        ("k8v4(33)", "group_size 33 must be a multiple of 2"),
        ("int8(4)", "int8 takes no arguments"),
        ("int8(bits=4)", "no argument 'bits'; int8 takes no arguments"),
        ("int4(group=64)", "no argument 'group'; int4 takes group_size. Did you mean 'group_size'"),
        ("int4(64,32)", "int4 takes group_size, so '32' has no place"),
        ("int4(64,group_size=64)", "given twice"),
        ("int4(group_size=big)", "group_size is 'big'; give a whole number"),
        ("int4(group_size=32.0)", "group_size is '32.0'; give a whole number"),
        ("int4(group_size=)", "group_size is ''; give a whole number"),
        ("int4(group_size=-2)", "must be a multiple of 2"),
        ("int4(group_size=33)", "must be a multiple of 2"),
        ("fp8(scales=units)", "no scales 'units'. Did you mean 'unit'"),
        ("mystream", r"mystream needs window; write mystream\(window=…\)"),
        ("mystream(window=abc)", "window is 'abc'; give a whole number of at least 1"),
        ("mystream(window=1.5)", "window is 1.5; give a whole number"),
        ("mystream(window=0)", "window is 0; give a whole number of at least 1"),
        ("mystream(window=8,sinks=-1)", "sinks is -1; give a whole number of at least 0"),
        ("mystream(window=8,4)", "'4' stands after a named argument"),
    ],
)
def test_wrong_settings_say_what_and_what_instead(streaming: None, text: str, match: str) -> None:
    with pytest.raises(ConfigError, match=match):
        parse_kv(text)


def test_a_plugin_that_is_no_preset_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_from_files", {})
    file = tmp_path / "odd.py"
    file.write_text("class Odd:\n    name = 'odd'\n    summary = 'no preset'\n\nKIND = 'kv'\nPLUGIN = Odd()\n")
    with pytest.raises(ConfigError, match="must define PLUGIN"):
        registry.add_file(file)
