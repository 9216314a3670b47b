"""llama.cpp's log read back, and what is refused before a process starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from niah.backends.llamacpp.log import read_report
from niah.backends.llamacpp.open import listening_address
from niah.backends.llamacpp.options import LlamaCppOptions
from niah.backends.llamacpp.plugin import PLUGIN
from niah.engines.checkpoint.gguf_describe import find_gguf
from niah.errors import ConfigError
from niah.kv.config import KVConfig, Placement, Window
from niah.kv.formats import Plain
from niah.kv.grammar import parse_one
from niah.kv.memory.totals import MIB, kv_bytes
from niah.models.known import builtin_shape
from niah.models.shape import LayerShape, ModelShape
from niah.types import Host

LOG = """
0.00.376.171 I print_info: n_swa                 = {window}
0.00.386.155 I llama_context: flash_attn            = enabled
{lines}
0.00.395.714 I llama_kv_cache: n_rot_k = 64, n_embd_head_k_all = 64
0.00.395.728 I llama_kv_cache: n_rot_v = 0, n_embd_head_k_all = 64
"""
LINE = "llama_kv_cache: size = {} MiB ({} cells, {} layers,  1/1 seqs), K ({}): {} MiB, V ({}): {} MiB"


def _log(*lines: str, window: int = 0) -> str:
    return LOG.format(window=window, lines="\n".join(lines))


@pytest.mark.parametrize("tokens", [1, 300, 2048])
def test_printed_sizes_become_exact_bytes(tokens: int) -> None:
    # 11.95 and 6.33 are rounded: the exact ones are 11.953125 and 6.328125
    report = read_report(_log(LINE.format(" 18.28", "  2048", " 30", "q8_0", "  11.95", "q4_0", "   6.33")))
    shape = builtin_shape("smollm2-135m")
    assert report.logical_bytes(tokens) == kv_bytes(shape, parse_one("q8_0(v=q4_0)"), tokens)
    assert report.pool_bytes == 18.28125 * MIB
    assert report.effective()["kv.rotated"] == "k"
    assert report.effective()["kv.reported_mib"] == 18.28
    assert report.window is None


def test_window_layers_have_a_cache_of_their_own() -> None:
    lines = (
        "llama_kv_cache_iswa: creating non-SWA KV cache, size = 4096 cells",
        LINE.format("12.00", "4096", "3", "f16", "6.00", "f16", "6.00"),
        "llama_kv_cache_iswa: creating     SWA KV cache, size = 1024 cells",
        LINE.format("15.00", "1024", "15", "f16", "7.50", "f16", "7.50"),
    )
    report = read_report(_log(*lines, window=512))
    gemma = builtin_shape("gemma-3-270m")
    for tokens in (100, 512, 4000):
        assert report.logical_bytes(tokens) == kv_bytes(gemma, parse_one("fp16"), tokens)
    assert report.held_bytes(4000) == 1024 * (3 * 4000 + 15 * 1024)
    assert report.pool_bytes == 27 * MIB
    full = read_report(_log(*lines, window=512), keeps_all=True)
    assert full.logical_bytes(1000) == 18 * 1024 * 1000


@pytest.mark.parametrize("before", ["", "0.1 I srv  init: chat template"])
@pytest.mark.parametrize("after", ["", "0.2 I srv  update_slots: all slots are idle\n" * 500])
def test_the_address_is_found_wherever_it_stands_in_the_log(before: str, after: str) -> None:
    assert listening_address(f"a line\n{before}LISTENING http://127.0.0.1:4711\n{after}") == "http://127.0.0.1:4711"
    assert listening_address(f"a line\n{before}LISTENING http://127.0.0.1:47") is None, "half of it is written"


def test_a_log_that_says_something_else_gives_no_bytes() -> None:
    assert read_report("nothing of this kind").logical_bytes(10) is None
    assert read_report("nothing of this kind").pool_bytes is None
    # no whole number of blocks per layer comes near 18.31 MiB
    odd = read_report(_log(LINE.format("18.31", "8192", "30", "q8_0", "11.97", "q4_0", "6.34")))
    assert odd.logical_bytes(10) is None
    unknown = read_report(_log(LINE.format("18.31", "8192", "30", "q9_9", "11.97", "q4_0", "6.34")))
    assert unknown.parts == ()


@pytest.mark.parametrize(
    ("kv", "options", "reason"),
    [
        (parse_one("int8"), {}, "no keys and values stored as int8"),
        (parse_one("fp8"), {}, "no keys and values stored as fp8_e4m3"),
        (parse_one("q8_0"), {"flash_attn": False}, "quantizes values only under flash attention"),
        (parse_one("llama(v=q4_0)"), {"flash_attn": False}, "quantizes values only under flash attention"),
        (parse_one("f16"), {"threads": 5}, "4 cores"),
        (KVConfig("w", Plain("fp16"), Plain("fp16"), tokens=Window(64)), {}, "no window on every layer"),
        (KVConfig("s", Plain("fp16"), Plain("fp16"), skip_layers=(0,)), {}, "no layers left in 16 bit"),
        (KVConfig("b", Plain("fp16"), Plain("fp16"), placement=Placement(block_size=16)), {}, "no paging"),
        (KVConfig("n", Plain("fp16"), Plain("fp16"), native=(("a", "b"),)), {}, "no engine-specific options"),
    ],
    ids=lambda value: value.name if isinstance(value, KVConfig) else None,
)
def test_refused(kv: KVConfig, options: dict[str, object], reason: str) -> None:
    problems = PLUGIN.problems(LlamaCppOptions.model_validate(options), kv, None, Host(cores=4))
    assert any(reason in problem.reason for problem in problems), problems


@pytest.mark.parametrize(
    "kv", ["f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl", "llama(k=q8_0)", "auto"]
)
def test_runs(kv: str) -> None:
    assert PLUGIN.problems(LlamaCppOptions(), parse_one(kv), builtin_shape("smollm2-135m"), Host(cores=4)) == []
    if kv in ("f16", "bf16", "llama(k=q8_0)", "auto"):
        assert PLUGIN.problems(LlamaCppOptions(flash_attn=False), parse_one(kv), None, Host(cores=4)) == []


def test_shapes_that_are_refused() -> None:
    odd = ModelShape("odd", (LayerShape("full", 1, 80, 80),), heads=1, hidden_size=80)
    assert "blocks of 32 do not divide" in PLUGIN.problems(LlamaCppOptions(), parse_one("q8_0"), odd, Host())[0].reason
    latent = builtin_shape("deepseek-v2-lite")
    assert "latent" in PLUGIN.problems(LlamaCppOptions(), parse_one("q8_0"), latent, Host())[0].reason
    state = ModelShape("s", (LayerShape("linear", state_bytes=8),), heads=1, hidden_size=80)
    assert "linear-attention" in PLUGIN.problems(LlamaCppOptions(), parse_one("fp16"), state, Host())[0].reason


def test_gguf_files_are_found_or_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="holds no GGUF file"):
        find_gguf(str(tmp_path))
    (tmp_path / "a-00002-of-00002.gguf").write_bytes(b"GGUF2")
    (tmp_path / "a-00001-of-00002.gguf").write_bytes(b"GGUF1")
    assert find_gguf(str(tmp_path)).name == "a-00001-of-00002.gguf"
    (tmp_path / "b.gguf").write_bytes(b"text")
    with pytest.raises(ConfigError, match="holds 2 GGUF files"):
        find_gguf(str(tmp_path))
    with pytest.raises(ConfigError, match="not a GGUF file"):
        find_gguf(str(tmp_path / "b.gguf"))
    with pytest.raises(ConfigError, match="Did you mean 'smollm2'"):
        find_gguf("smolm2")
