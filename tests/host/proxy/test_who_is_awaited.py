"""A client that gives up waiting says who its sum waits for: what proxies answer, and processes that are stopped."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import pytest
from proxy_group import LIMIT, group_of, run_group

from catchment.host.proxy import Client, ProxyError, ProxyGroup, TensorTable
from catchment.host.proxy.channel import Channel, Kind, Message, accept, admit, connect, listen
from catchment.host.proxy.inquiry import Inquiry
from catchment.host.proxy.sums import Handle

SMALL = TensorTable.of({"a": 100}, exponent=1)
LARGE = TensorTable.of({"a": 1 << 22}, exponent=1)
"""Several shards, of which none finds room in a socket that nobody reads."""
WAIT = 4.0
"""Seconds: a client asks in the last of them."""
WAITS = 10
"""Number of waits in vain after which a client or a test gives up."""
CLIENT = f"""
import os, sys
import numpy as np
from pathlib import Path
from catchment.host.proxy import Client, ProxyError, ProxyGroup, TensorTable
number = int(sys.argv[2])
with Client(ProxyGroup.read(Path(sys.argv[1])), number, TensorTable.of({{"a": 100}}, exponent=1)) as client:
    waits = 0
    while True:
        summed = client.push("a", np.ones(100, np.float32))
        while not summed.done():
            try:
                summed.wait({WAIT})
            except ProxyError as error:
                print(error, flush=True)
                waits += 1
                if waits == {WAITS}:
                    os._exit(1)  # to leave would take as long as the proxy that stands still is waited for
        client.end_step()
        print("a step", flush=True)
"""


def _told(summed: Handle) -> str:
    """What a wait in vain says, once all proxies have had the time to answer."""
    said = ""
    for _ in range(WAITS):
        with pytest.raises(ProxyError) as raised:
            summed.wait(WAIT)
        if "has not answered" not in (said := str(raised.value)):
            break
    return said


@pytest.mark.sampled(2)
def test_a_client_that_has_not_pushed_is_named_and_may_push_yet() -> None:
    waited = threading.Event()

    def work(client: Client, number: int) -> str:
        if number == 1:
            assert waited.wait(LIMIT)
            client.push("a", np.ones(100, np.float32))
            client.end_step()
            return ""
        summed = client.push("a", np.ones(100, np.float32))
        try:
            said = _told(summed)
        finally:
            waited.set()
        client.end_step()
        return said

    with group_of(2, 3) as group:
        first, _, third = run_group(group, SMALL, work)
    assert first == third == "the sum of a of step 0 is not there after 4 s: client 1 has not pushed it"


@pytest.mark.sampled(2)
def test_a_client_that_takes_no_sums_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    waited, receive = threading.Event(), Client._receive

    def late(client: Client, proxy: int, channel: Channel) -> None:
        if client._number == 1:
            assert waited.wait(LIMIT)
        receive(client, proxy, channel)

    def work(client: Client, number: int) -> str:
        summed = client.push("a", np.ones(1 << 22, np.float32))
        if number == 0:
            try:
                said = [_told(summed) for _ in range(2)][-1]  # the proxy adds for a while
            finally:
                waited.set()
        client.end_step()
        return said if number == 0 else ""

    monkeypatch.setattr(Client, "_receive", late)
    with group_of(1, 2) as group:
        said, _ = run_group(group, LARGE, work)
    assert said.endswith(f"after 4 s: client 1 does not take what {group.name(0)} sends")


def test_what_is_wrong_with_a_question_or_an_answer_is_said() -> None:
    def ask(client: Client, _: int) -> None:
        client._channels[0].send(Message(Kind.ASK, number=1))
        client.push("a", np.ones(100, np.float32)).wait()

    with group_of(1, 1) as group, pytest.raises(ProxyError, match="client 0 asks for tensor 1 of a table that has 1"):
        run_group(group, SMALL, ask)
    with _ends() as (proxy, client):
        inquiry = Inquiry([client])
        for facts in ({}, {"awaited": "client 1"}, {"awaited": [1]}):
            proxy.say(Kind.AWAITED, facts)
            with pytest.raises(ProxyError, match="proxy 0 does not say who it waits for: run the same release"):
                inquiry.take(0, client.receive())


def test_answers_to_earlier_questions_are_forgotten() -> None:
    with _ends() as (proxy, client):
        inquiry = Inquiry([client])
        inquiry.begin(3, 5)
        assert proxy.receive() == Message(Kind.ASK, number=3, step=5)
        for number, step in ((3, 4), (2, 5)):
            proxy.say(Kind.AWAITED, {"awaited": ["client 1"]}, number=number, step=step)
            inquiry.take(0, client.receive())
            assert inquiry.found(2.0) == "proxy 0 has not answered for 2 s"
        proxy.say(Kind.AWAITED, {"awaited": []}, number=3, step=5)
        inquiry.take(0, client.receive())
        assert inquiry.found(2.0) == "all clients have pushed it, and all proxies are there: wait for longer"


@contextmanager
def _ends() -> Iterator[tuple[Channel, Channel]]:
    """A channel, at a proxy and at a client."""
    with group_of(1, 1) as group, listen(group.addresses[0]) as server, ExitStack() as exits:
        found: list[Channel] = []

        def serve() -> None:
            found.append(accept(server, LIMIT))
            admit(found[0], group.secret, LIMIT)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        client = connect(group.addresses[0], "proxy 0", group.secret, {"role": "client"}, LIMIT, lambda: None)
        exits.callback(client.close)
        thread.join(LIMIT)
        exits.callback(found[0].close)
        yield found[0], client


@pytest.mark.sampled(2)
@pytest.mark.parametrize("stopped", ["client", "proxy"])
def test_a_process_that_is_stopped_is_named(stopped: str, tmp_path: Path, rng: random.Random) -> None:
    number = rng.randrange(3)
    with group_of(3, 3) as group, _processes(group, tmp_path / "group.json") as (proxies, clients):
        for client in clients:
            assert client.stdout is not None
            assert client.stdout.readline()
        (clients if stopped == "client" else proxies)[number].send_signal(signal.SIGSTOP)
        own = clients[(number + 1) % 3]
        assert own.stdout is not None
        named = (
            f"client {number} has not pushed it" if stopped == "client" else f"{group.name(number)} has not answered"
        )
        assert any(named in line for line in own.stdout)


@contextmanager
def _processes(group: ProxyGroup, path: Path) -> Iterator[Sequence[list[subprocess.Popen[str]]]]:
    """Proxies by the command, clients by the script above; all of them are killed."""
    facts = {"addresses": group.addresses, "clients": group.clients, "timeout": group.timeout}
    path.write_text(json.dumps({**facts, "secret": group.secret.decode()}))
    with ExitStack() as exits:

        def start(*words: str) -> subprocess.Popen[str]:
            process = subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, text=True)
            exits.callback(process.communicate)
            exits.callback(process.kill)
            return process

        proxies = [start("-m", "catchment.cli", "proxy", "run", str(path), str(n)) for n in range(len(group.addresses))]
        yield proxies, [start("-c", CLIENT, str(path), str(n)) for n in range(group.clients)]
