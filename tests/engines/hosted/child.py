"""``niah run`` in a process of its own that starts at once: the fork server has imported everything already."""

from __future__ import annotations

import sys
from typing import Any

import aiolimiter  # noqa: F401
import httpx2  # noqa: F401
import openai  # noqa: F401
import pytest
import stamina  # noqa: F401

import niah.api as api
import niah.backends.openai.adapter
import niah.backends.openai.model
import niah.backends.openai.plugin
import niah.engines.hosted.session
import niah.haystacks.chronicle.plugin
import niah.haystacks.noise
import niah.scoring.exact
import niah.tasks.multikey  # noqa: F401
from niah.config import build_config, normalize
from niah.errors import NiahError
from niah.prompts import segments
from tests.helpers.loopback import close_other_sockets


def run(settings: dict[str, Any], heard: str) -> None:
    """Run to the end, without figures and report; exits as the command would, what it says goes to a file."""
    close_other_sockets(pytest.MonkeyPatch())
    # text kept beyond the prompts themselves, of which such short ones need little
    segments.SLACK_TOKENS = 512
    api.write_outputs = lambda *_: []
    try:
        code = api.execute(api.plan_run(build_config(normalize(settings)))).exit_code
    except NiahError as err:
        code = err.exit_code
        with open(heard, "a") as file:  # noqa: PTH123
            file.write(f"{err}\n")
    sys.exit(code)
