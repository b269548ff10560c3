"""What the owner of an emulated network is asked, and what whoever asks is told."""

from __future__ import annotations

import json
import select
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from catchment.controlplane.networks.requests import RequestSocket, ask
from catchment.controlplane.networks.state import NetworkError

Serve = Callable[[int], None]


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, str]]]:
    """A network `net` whose owner answers until the test ends; its switches fail in their own ways."""
    monkeypatch.setenv("CATCHMENT_RUN_DIR", str(tmp_path))
    seen: list[tuple[str, str]] = []
    failures = {"long": NetworkError("x" * 100_000 + " and the reason"), "disk": OSError(28, "No space left on device")}

    def do(verb: str, switch: str) -> None:
        seen.append((verb, switch))
        if switch in failures:
            raise failures[switch]

    here, there = socket.socketpair()
    with RequestSocket("net") as requests, here, there:

        def serve() -> None:
            while there not in (ready := select.select([there, requests], [], [])[0]):
                assert ready
                requests.answer(do)

        owner = threading.Thread(target=serve)
        owner.start()
        yield seen
        here.send(b"end")
        owner.join(60)
        assert not owner.is_alive(), "the owner hangs"


def test_what_is_asked_is_done(asked: list[tuple[str, str]]) -> None:
    ask("net", "kill", "s1")
    ask("net", "restart", "s1")
    assert asked == [("kill", "s1"), ("restart", "s1")]


@pytest.mark.parametrize(("switch", "said"), [("long", "and the reason$"), ("disk", "No space left on device")])
def test_who_asks_hears_why_not(asked: list[tuple[str, str]], switch: str, said: str) -> None:
    """However long the complaint, and whatever went wrong."""
    with pytest.raises(NetworkError, match=said):
        ask("net", "restart", switch)
    ask("net", "kill", "s1")
    assert asked[-1] == ("kill", "s1")


@pytest.mark.parametrize("request_", [b"{", b"[]", b"3", b"null", b'{"verb": 1}', b"\xff", b"[" * 4000, b""])
def test_nonsense_ends_nothing(asked: list[tuple[str, str]], tmp_path: Path, request_: bytes) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.settimeout(60)
        connection.connect(str(tmp_path / "net.requests"))
        connection.send(request_)
        assert json.loads(connection.recv(4096)) == {"error": "that is no request"}
    ask("net", "kill", "s1")
    assert asked == [("kill", "s1")]


def test_who_goes_before_the_answer_ends_nothing(asked: list[tuple[str, str]], tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.connect(str(tmp_path / "net.requests"))
    ask("net", "kill", "s1")
    assert asked == [("kill", "s1")]


def test_a_network_without_an_owner_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CATCHMENT_RUN_DIR", str(tmp_path))
    with pytest.raises(NetworkError, match="was not made by `catchment net up`"):
        ask("net", "kill", "s1")
