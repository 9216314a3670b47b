from __future__ import annotations

import socket
from typing import Any

import pytest

from niah.engines.http.address import is_loopback
from niah.errors import ConfigError
from niah.view.serve import Bound, bind, choose_token

OWN = ("127.0.0.1", "127.9.9.9", "::1", "LocalHost")
OTHERS = ("0.0.0.0", "::", "10.0.0.1", "example")


@pytest.mark.parametrize(("host", "own"), [*((host, True) for host in OWN), *((host, False) for host in OTHERS)])
def test_which_addresses_stay_on_this_machine(host: Any, own: Any) -> None:
    assert is_loopback(host) is own


def test_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NIAH_VIEW_TOKEN", raising=False)
    assert choose_token("127.0.0.1", make=False) is None
    made = choose_token("127.0.0.1", make=True)
    assert made is not None
    assert len(made) >= 32
    assert made != choose_token("127.0.0.1", make=True)
    with pytest.raises(ConfigError, match="needs a token"):
        choose_token("0.0.0.0", make=False)
    monkeypatch.setenv("NIAH_VIEW_TOKEN", "one-from-the-environment")
    assert choose_token("0.0.0.0", make=False) == "one-from-the-environment"
    assert choose_token("127.0.0.1", make=False) == "one-from-the-environment"


def test_a_free_port_and_its_address() -> None:
    bound = bind("127.0.0.1", 0, None)
    with bound.listener:
        assert bound.url == f"http://127.0.0.1:{bound.port}/"
        with pytest.raises(ConfigError, match="it is in use"):
            bind("127.0.0.1", bound.port, None)


def test_an_address_of_all_is_shown_as_this_machine() -> None:
    with socket.socket() as listener:
        assert Bound(listener, "0.0.0.0", 80, "t").url == f"http://{socket.gethostname()}:80/?token=t"
        assert Bound(listener, "::1", 80, None).url == "http://[::1]:80/"
