from __future__ import annotations

import pytest

from niah import errors


def test_exit_codes_are_the_documented_ones() -> None:
    codes: dict[type[errors.NiahError], int] = {
        errors.ThresholdMissed: 1,
        errors.ConfigError: 2,
        errors.MissingDependency: 2,
        errors.CellError: 3,
        errors.BackendUnavailable: 4,
        errors.BudgetExceeded: 5,
        errors.StoreError: 6,
    }
    assert {kind: kind.exit_code for kind in codes} == codes


def test_boundary_names_what_escapes() -> None:
    with (
        pytest.raises(errors.CellError, match="the engine: ValueError: bad") as caught,
        errors.boundary("k", "the engine"),
    ):
        raise ValueError("bad")
    assert caught.value.kind == "k"
    with pytest.raises(errors.CellError) as memory, errors.boundary("k", "the engine"):
        raise MemoryError
    assert memory.value.kind == "out_of_memory"


def test_boundary_lets_typed_errors_pass() -> None:
    with pytest.raises(errors.StoreError), errors.boundary("k", "what"):
        raise errors.StoreError("disk full")


def test_near() -> None:
    assert errors.near("vlm", ["vllm", "oracle"]) == " Did you mean 'vllm'?"
    assert errors.near("qqq", ["vllm", "oracle"]) == " Known: oracle, vllm."
    assert errors.near("x", []) == ""
