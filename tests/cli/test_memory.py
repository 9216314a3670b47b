"""``niah memory``: the table, the JSON line and the errors, without a network."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from niah import registry
from niah.cli.memory import memory
from niah.engines.checkpoint.shape_by_name import resolve_shape
from niah.errors import ConfigError

CONFIG = {
    "model_type": "llama",
    "num_hidden_layers": 2,
    "hidden_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "torch_dtype": "float16",
}


def run(*arguments: str) -> Result:
    app = typer.Typer()
    app.command()(memory)
    return CliRunner().invoke(app, arguments)


def rows(*arguments: str) -> list[dict[str, Any]]:
    result = run(*arguments, "--json")
    assert result.exception is None
    document = json.loads(result.stdout.strip().splitlines()[-1])
    assert set(document) == {"model", "rows"}
    return list(document["rows"])


def fake_hub(monkeypatch: pytest.MonkeyPatch, answer: dict[str, Any] | Exception) -> list[str]:
    asked: list[str] = []

    def from_pretrained(name: str) -> SimpleNamespace:
        asked.append(name)
        if isinstance(answer, Exception):
            raise answer
        return SimpleNamespace(to_dict=lambda: answer)

    module = ModuleType("transformers")
    module.AutoConfig = SimpleNamespace(from_pretrained=from_pretrained)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "transformers", module)
    return asked


def test_json_has_exactly_the_promised_fields_and_numbers() -> None:
    found = rows("--model", "llama-2-70b", "--lengths", "4k,128k", "--kv", "reference,int8", "--gpu", "160GiB")
    assert [set(row) for row in found] == [
        {
            "kv",
            "length",
            "batch",
            "logical_bytes",
            "allocated_bytes",
            "naive_mha_bytes",
            "reference_bytes",
            "weights_bytes",
            "formula",
            "fits",
        }
    ] * 4
    assert found[0] == {
        "kv": "fp16",
        "length": 4096,
        "batch": 1,
        "logical_bytes": 1_342_177_280,
        "allocated_bytes": 1_342_177_280,
        "naive_mha_bytes": 10_737_418_240,
        "reference_bytes": 1_342_177_280,
        "weights_bytes": 137_953_296_384,
        "formula": "2 × 80 layers × 8 KV heads × 128 × T × 2 B = 327,680 B × T",
        "fits": True,
    }
    assert [(row["kv"], row["length"], row["fits"]) for row in found[1:]] == [
        ("fp16", 131_072, False),
        ("int8", 4096, True),
        ("int8", 131_072, True),
    ]


def test_defaults_and_batch() -> None:
    found = rows("--batch", "3")
    assert [(row["kv"], row["length"]) for row in found[:4]] == [
        ("bf16", 4096),
        ("bf16", 32_768),
        ("bf16", 131_072),
        ("int8", 4096),
    ]
    assert len(found) == 9
    assert found[0]["logical_bytes"] == 3 * 94_371_840
    assert found[0]["fits"] is None
    assert found[0]["formula"].endswith("; times 3 sequences")


def test_table_shows_both_formulas_the_reason_and_the_unit() -> None:
    result = run(
        "--model", "meta-llama/Llama-2-70b-hf", "--lengths", "4k,128k", "--kv", "reference,int8", "--gpu", "80GiB"
    )
    assert result.exception is None
    out = result.stdout
    for part in ("1.25 GiB", "1,342,177,280", "10.00 GiB", "320.00 GiB", "1.94 × smaller", "128.48 GiB", "fits 80GiB"):
        assert part in out
    assert "The MHA formula uses 64 heads where this model stores 8 KV heads: 8 × too big at 131,072 tokens." in out
    assert "int8: 80 layers × 8 KV heads × (K 128 B + 4 B scales + V 128 B + 4 B scales) × T = 168,960 B × T" in out
    assert "\x1b" not in out
    assert "131,072 tokens is more than the 4,096 that llama-2-70b is made for" in result.stderr


def test_table_of_a_larger_type(monkeypatch: pytest.MonkeyPatch) -> None:
    from niah import registry
    from niah.kv.config import KVConfig
    from niah.kv.formats import Plain
    from niah.kv.preset import KVPreset

    preset = KVPreset("myfp32", "test", lambda: KVConfig("myfp32", Plain("fp32"), Plain("fp32")))
    monkeypatch.setitem(registry._from_files, ("kv", "myfp32"), preset)
    assert "2.00 × larger" in run("--kv", "myfp32", "--lengths", "1k").stdout


def test_folder_without_sizes_of_weights(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    found = rows("--model", str(tmp_path), "--lengths", "100", "--kv", "reference", "--gpu", "1GiB")
    assert (found[0]["kv"], found[0]["logical_bytes"]) == ("fp16", 2 * 2 * 2 * 32 * 100 * 2)
    assert found[0]["weights_bytes"] is None
    assert found[0]["fits"] is None
    table = run("--model", str(tmp_path), "--lengths", "100", "--gpu", "1GiB").stdout
    assert table.count("unknown") == 6


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (["--kv", "int9"], "no KV setting named 'int9'"),
        (["--gpu", "80G"], "'80G' is not an amount of memory"),
        (["--lengths", "4q"], "4q"),
        (["--model", "lama-3.1-8b"], "Did you mean 'llama-3.1-8b'"),
        (["--model", "deepseek-v3", "--kv", "int8,int4"], "MLA latent"),
    ],
)
def test_wrong_use_is_a_sentence(arguments: list[str], match: str) -> None:
    result = run(*arguments)
    assert isinstance(result.exception, ConfigError)
    assert match in str(result.exception)
    assert result.stdout == ""


def test_batch_must_be_positive() -> None:
    assert run("--batch", "0").exit_code == 2


def test_hub_id_is_asked_only_when_nothing_else_matches(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = fake_hub(monkeypatch, CONFIG)
    assert resolve_shape("meta-llama/Llama-2-70b-hf").name == "llama-2-70b"
    assert asked == []
    assert resolve_shape("org/new-model").kv_heads == (2,)
    assert asked == ["org/new-model"]


def test_misspelt_names_and_paths_do_not_wait_for_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = fake_hub(monkeypatch, CONFIG)
    for name in ("lama-3.1-8b", "./models/x", "/nowhere/models/x"):
        with pytest.raises(ConfigError, match="is no folder, built-in model or hub id"):
            resolve_shape(name)
    assert asked == []


@pytest.mark.parametrize("error", [OSError("no route to the hub\nmore"), ValueError("no route to the hub")])
def test_unreachable_hub_is_a_config_error_with_the_reason(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    fake_hub(monkeypatch, error)
    with pytest.raises(ConfigError, match=r"\(no route to the hub\). Did you mean 'llama-3.1-8b'"):
        resolve_shape("org/llama-3.1-9b")


def test_missing_transformers_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ConfigError, match=r"pip install 'niah-kv\[transformers\]'"):
        resolve_shape("org/new-model")


def test_the_ladder_as_a_table_and_as_json() -> None:
    said = run("--model", "llama-2-70b", "--lengths", "128k", "--ladder")
    assert said.exception is None
    assert "GQA-8, 16 bit    42.9 GB    40.00 GiB    42,949,672,960         12.5 %" in said.stdout
    assert "343.6 GB" in said.stdout
    assert said.stdout.count("Paging makes a full cache no smaller") == 1
    document = json.loads(run("--lengths", "1k,2k", "--kv", "int8,kivi2", "--ladder", "--json").stdout.splitlines()[-1])
    assert [found["length"] for found in document["ladders"]] == [1024, 2048]
    assert [step["kv"] for step in document["ladders"][1]["steps"]] == [None, "bf16", "int8", "kivi2"]
    refused = run("--ladder", "--gpu", "80GiB")
    assert isinstance(refused.exception, ConfigError)
    assert "--gpu and --ladder" in str(refused.exception)


def test_blocks_are_counted_in_what_fits() -> None:
    (row,) = rows("--model", "llama-2-70b", "--lengths", "1000", "--kv", "int8+paged(block_size=128)")
    assert row["allocated_bytes"] - row["logical_bytes"] == 24 * 168_960
    said = run("--model", "llama-2-70b", "--lengths", "1000", "--kv", "int8+paged(block_size=128)").stdout
    assert f"{row['allocated_bytes']:,}" in said


def test_a_refused_setting_has_rows_of_its_own_and_leaves_the_others() -> None:
    found = rows("--model", "deepseek-v3", "--lengths", "4k,32k", "--kv", "reference,int8")
    assert [(row["kv"], row["logical_bytes"] is None, "refused" in row) for row in found] == [
        ("bf16", False, False),
        ("bf16", False, False),
        ("int8", True, True),
        ("int8", True, True),
    ]
    # 61 layers, 512 + 64 elements of 2 bytes
    assert found[0]["logical_bytes"] == 61 * 576 * 2 * 4096
    assert "MLA latent" in found[2]["refused"]
    assert (found[2]["fits"], found[2]["reference_bytes"]) == (None, found[0]["reference_bytes"])


def test_the_table_says_why_a_setting_has_no_figure() -> None:
    result = run("--model", "deepseek-v3", "--lengths", "4k", "--gpu", "80GiB")
    assert result.exit_code == 0
    assert "int8: refused: 'deepseek-v3' stores an MLA latent" in result.output
    assert "bf16: 61 layers ×" in result.output


def write_config(folder: Path, **values: Any) -> str:
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(values))
    return str(folder)


def test_a_state_that_is_not_counted_is_said(tmp_path: Path) -> None:
    """MiniMax-Text-01: 10 of 80 layers are attention, the others keep a constant state."""
    model = write_config(
        tmp_path / "minimax",
        model_type="MiniMaxText01",
        attn_type_list=([0] * 7 + [1]) * 10,
        num_hidden_layers=80,
        hidden_size=6144,
        num_attention_heads=64,
        num_key_value_heads=8,
        head_dim=128,
    )
    (row,) = rows("--model", model, "--lengths", "32k", "--kv", "bf16")
    assert row["logical_bytes"] == 10 * 8 * 128 * 2 * 2 * 32_768 == 1_342_177_280
    assert row["not_counted"] == "not counted: the constant state of 70 layers"
    result = run("--model", model, "--lengths", "32k", "--kv", "bf16")
    assert "not counted: the constant state of 70 layers" in result.output
    assert "right for this model" not in result.output


def test_a_preset_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_from_files", {})
    file = tmp_path / "mine.py"
    file.write_text(
        "from niah.plugins import KVConfig, KVPreset, TokenHead\n"
        'PLUGIN = KVPreset("mine8", "8 bits", lambda: KVConfig("mine8", TokenHead("int8"), TokenHead("int8")))\n'
    )
    (row,) = rows("--model", "llama-3.1-8b", "--lengths", "4k", "--kv", "mine8", "--plugin", str(file))
    assert (row["kv"], row["logical_bytes"]) == ("mine8", 32 * 8 * (128 + 4) * 2 * 4096)
