"""Run the command line in this process, as a user would, and keep what it said."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import Any

import pytest

from niah.cli.app import main


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str

    def document(self) -> Any:
        """The JSON document on the last line of stdout."""
        return json.loads(self.out.strip().splitlines()[-1])


class Command:
    """``niah(...)`` with pytest's capture."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch, self._capsys = monkeypatch, capsys

    def __call__(self, *args: object) -> Said:
        self._capsys.readouterr()
        self._monkeypatch.setattr(sys, "argv", ["niah", *map(str, args)])
        code = 0
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        said = self._capsys.readouterr()
        return Said(code, said.out, said.err)
