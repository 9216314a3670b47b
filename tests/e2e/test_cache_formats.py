"""What each stored format costs a real model in the log-probability of expected answers, paired over 50 cells."""

from __future__ import annotations

from pathlib import Path
from statistics import NormalDist
from typing import Any

import pandas as pd
import pytest

import niah as package
from tests.helpers.known import known

pytestmark = [pytest.mark.model, pytest.mark.proof]

CELLS = 50
SETTINGS = "bf16,int8,int4,kivi4,kivi2"
OTHERS = "k8v4,fp8,fp8(scales=dynamic),int4+skip(0,-1),quanto4"


@pytest.fixture(scope="module")
def formats_run(smollm2_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> package.Run:
    out = tmp_path_factory.mktemp("formats")
    return package.run(kv=SETTINGS, lengths="512", depths=10, trials=5, reference=False, out=str(out))


@pytest.fixture(scope="module")
def others_run(smollm2_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> package.Run:
    out = tmp_path_factory.mktemp("others")
    return package.run(kv=OTHERS, lengths="512", depths=2, trials=1, reference=False, out=str(out))


@pytest.fixture(scope="module")
def losses(formats_run: package.Run) -> pd.DataFrame:
    """Log-probability that bf16 gives the expected answer, less what each setting gives it; a row a cell."""
    wide = formats_run.frame().pivot_table(index="pair_id", columns="kv", values="logprob")
    assert len(wide) == CELLS
    return -wide.sub(wide["bf16"], axis=0)


def interval(values: pd.Series[float]) -> tuple[float, float]:
    """95 % interval of a mean."""
    half = NormalDist().inv_cdf(0.975) * float(values.sem())  # type: ignore[arg-type]
    return float(values.mean()) - half, float(values.mean()) + half


def test_bytes_add_up_for_every_format(formats_run: package.Run, others_run: package.Run) -> None:
    for row in (*formats_run.rows, *others_run.rows):
        assert row.outcome == "answered"
        assert row.kv_memory.logical_bytes == row.kv_memory.formula_bytes
        assert known(row.kv_memory.allocated_bytes) >= known(row.kv_memory.logical_bytes)


def test_int8_is_close_to_bf16(losses: pd.DataFrame) -> None:
    assert losses["int8"].abs().mean() < 0.15
    low, high = interval(losses["int8"])
    assert -0.1 < low < high < 0.1


def test_fewer_bits_lose_more(losses: pd.DataFrame) -> None:
    print(losses.agg(["mean", "sem"]).T.to_string())
    mean = losses.mean()
    assert mean["int8"] < mean["int4"]
    assert mean["kivi4"] < mean["kivi2"]
    # the order does not hang on a few cells: the paired differences are above zero with their intervals
    for worse, better in (("int4", "int8"), ("kivi2", "kivi4")):
        low, _ = interval(losses[worse] - losses[better])
        assert low > 0, (worse, better)


def test_what_is_in_force_is_recorded(formats_run: package.Run, others_run: package.Run) -> None:
    effective = {kv: run.setting(kv)["effective"] for run in (formats_run, others_run) for kv in run.kvs()}
    assert effective["kivi2"]["kv.k_storage"] == "uint8+float16+float16+bfloat16"
    assert effective["kivi2"]["kv.residual"] == 128
    assert effective["fp8_e4m3"]["kv.scales"] == "unit"
    assert effective["fp8_e4m3"]["kv.k_storage"] == "float8_e4m3fn"
    assert effective["fp8_e4m3(scales=dynamic)"]["kv.k_storage"] == "float8_e4m3fn+float32"
    assert effective["k8v4"]["kv.k_dtype"] == "int8"
    assert effective["k8v4"]["kv.v_dtype"] == "int4"
    assert effective["int4+skip(0,-1)"]["kv.k_dtype"] == "bf16 (2 layers), int4 (28 layers)"
    assert effective["int4+skip(0,-1)"]["kv.skip_layers"] == "0,-1"
    assert effective["bf16"]["kv.scales"] is None
    raw = {kv for kv, one in effective.items() if one["kv.prefill_reads"] == "raw_chunk"}
    assert raw == {"quanto4"}
    assert effective["quanto4"]["prefill_chunk"] == "whole context"


def test_kivi_packed_forked_and_cold_prompts_agree(tmp_path: Path, smollm2_folder: Path) -> None:
    """Its context cannot be cropped, so the three ways differ in what they keep; the answers may not."""
    ways: tuple[dict[str, Any], ...] = ({}, {"reuse": "off"}, {"backend": {"name": "transformers", "pack": False}})
    runs = []
    for number, more in enumerate(ways):
        out = str(tmp_path / str(number))
        runs.append(package.run(kv="kivi4", lengths="512", depths=2, trials=1, reference=False, out=out, **more))
    packed = {row.pair_id: row.logprob for row in runs[0].rows}
    assert len(packed) == 2
    # a machine that computes in bf16 rounds the ways differently, and 4-bit codes turn that into more
    apart = 0.05 if runs[0].setting("kivi4")["effective"]["compute_dtype"] == "float32" else 0.25
    for run in runs[1:]:
        assert {row.pair_id: row.logprob for row in run.rows} == pytest.approx(packed, abs=apart)
    assert sum(known(row.cached_tokens) > 0 for row in runs[2].rows) == 1, "one prefill serves all questions"
    assert not any(row.cached_tokens for row in runs[1].rows)
