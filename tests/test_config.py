from __future__ import annotations

from pathlib import Path

import pytest

from niah.config import RunConfig, apply_sets, build_config, load_yaml, merge, named_from_text, normalize, split_list
from niah.errors import ConfigError
from niah.kv.grammar import parse_one


def test_defaults_are_the_demo() -> None:
    config = RunConfig()
    assert (config.backend.name, config.task.name, config.haystack.name) == ("transformers", "multikey", "chronicle")
    assert config.kv is None


def test_yaml_short_and_long_forms(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(
        "backend: {name: oracle, window: 512}\ntask: single\nkv: bf16,int4(group_size=16)\n"
        "grid: {lengths: [1k, 2048], depths: 5, trials: 3}\n"
    )
    config = build_config(load_yaml(path))
    assert config.backend.options == {"window": 512}
    assert config.task.name == "single"
    assert config.kv == (parse_one("bf16"), parse_one("int4(group_size=16)"))
    assert (config.grid.lengths, config.grid.depths, config.grid.trials) == ("1k,2048", "5", 3)


def test_saved_config_builds_itself_again() -> None:
    config = build_config(apply_sets({}, ["backend=oracle", "backend.window=7", "grid.trials=4", "kv=bf16,int8"]))
    assert build_config(normalize(config.to_json())) == config


def test_sets_win_and_reach_plugins() -> None:
    data = apply_sets({"grid": {"trials": 2}}, ["grid.trials=9", "backend.loss.int4=0.1", "task.keys=8"])
    assert data["grid"]["trials"] == 9
    assert data["backend"]["options"] == {"loss": {"int4": 0.1}}
    assert data["task"]["options"] == {"keys": 8}


def test_another_backend_drops_the_options_of_the_first() -> None:
    low = {"backend": {"name": "oracle", "options": {"window": 5}}}
    assert merge(low, {"backend": {"name": "fake"}})["backend"] == {"name": "fake"}
    assert merge(low, {"backend": {"name": "oracle"}})["backend"]["options"] == {"window": 5}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("chronicle", {"name": "chronicle"}),
        ("hf:org/name/sub:test#body", {"name": "hf", "argument": "org/name/sub:test#body"}),
        ("book.txt", {"name": "text", "argument": "book.txt"}),
        ("texts/*.md", {"name": "text", "argument": "texts/*.md"}),
        ("-", {"name": "text", "argument": "-"}),
    ],
)
def test_haystack_words(text: str, expected: dict[str, str]) -> None:
    assert named_from_text("haystack", text) == expected


def test_list_respects_parentheses() -> None:
    assert split_list("bf16, streaming(sinks=4,window=512),,int8") == ["bf16", "streaming(sinks=4,window=512)", "int8"]


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ({"modle": "x"}, "unknown key 'modle'. Did you mean 'model'?"),
        ({"grid": {"trails": 3}}, "unknown key 'grid.trails'. Did you mean 'trials'?"),
        ({"grid": {"trials": 0}}, "grid.trials cannot be 0"),
        ({"grid": {"trials": True}}, "grid.trials cannot be True: a number is needed"),
        ({"answer_budget": False}, "answer_budget cannot be False: a number is needed"),
        ({"max_minutes": True}, "max_minutes cannot be True: a number is needed"),
        ({"model": ""}, "model cannot be ''"),
        ({"reuse": "maybe"}, "reuse cannot be 'maybe'"),
    ],
)
def test_wrong_config_is_one_sentence(data: dict[str, object], sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        build_config(data)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("- a\n- b\n", "must hold a mapping"),
        ("a: [1\n", "is not valid YAML"),
        ("backend: {name: openai, api_key: abc}\n", "environment or .env only"),
    ],
)
def test_wrong_yaml(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=sentence):
        load_yaml(path)


@pytest.mark.parametrize("item", ["nonsense", "=3", "backend.api_key=x"])
def test_wrong_sets(item: str) -> None:
    with pytest.raises(ConfigError):
        apply_sets({}, [item])


def test_trials_may_be_left_to_the_run() -> None:
    auto = build_config({"grid": {"trials": "auto"}}).grid
    assert (auto.auto_trials, auto.trials) == (True, 64)
    asked = build_config({"grid": {"trials": "auto:32"}})
    assert (asked.grid.auto_trials, asked.grid.trials) == (True, 32)
    assert build_config(asked.to_json()) == asked, "what run.json keeps reads back"
    assert not build_config({"grid": {"trials": "6"}}).grid.auto_trials
    for wrong in ("auto:x", "auto:0", "some"):
        with pytest.raises(ConfigError, match=r"grid\.trials cannot be"):
            build_config({"grid": {"trials": wrong}})
