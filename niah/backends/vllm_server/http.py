"""Requests to a vLLM server."""

from __future__ import annotations

import os

from niah.engines.server.http import HttpClient


class ServerClient(HttpClient):
    """One vLLM server, by its address; its key, where it wants one, is in ``VLLM_API_KEY``."""

    def __init__(self, base_url: str, timeout_s: float) -> None:
        super().__init__(base_url, timeout_s, os.environ.get("VLLM_API_KEY"))
