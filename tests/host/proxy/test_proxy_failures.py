"""What clients and proxies are told when something is wrong, and real processes that are killed."""

from __future__ import annotations

import json
import random
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import pytest
from proxy_group import LIMIT, group_of, push_all, run_group, step

from catchment.host.proxy import Client, Proxy, ProxyError, ProxyGroup, TensorTable
from catchment.host.proxy.channel import Channel, Kind, Message, accept, admit, listen
from catchment.host.proxy.leader import Leader
from catchment.host.proxy.parts import Parts

TABLE = TensorTable.of({"a": 100, "b": 7}, {"a": 1, "b": 2})
CLIENT = """
import json, sys
import numpy as np
from pathlib import Path
from catchment.host.proxy import Client, ProxyGroup, TensorTable
group, number, steps = ProxyGroup.read(Path(sys.argv[1])), int(sys.argv[2]), int(sys.argv[3])
table = TensorTable.of({"a": 100, "b": 7}, {"a": 1, "b": 2})
with Client(group, number, table) as client:
    for step in range(steps):
        found = {}
        for name, size in (("a", 100), ("b", 7)):
            client.push(name, np.full(size, (number + 1) * 2.0 ** -(step % 8), np.float32) / 8)
            found[name] = np.empty(size, np.float32)
        for name, out in found.items():
            client.pull(name, out).wait()
        client.end_step()
        print(json.dumps([step, float(found["a"].sum()), float(found["b"].sum())]), flush=True)
"""


def test_routes_have_to_name_a_proxy_for_every_shard() -> None:
    with group_of(1, 1) as group, pytest.raises(ProxyError, match="client 0 routes 2 shards to"):
        run_group(group, TABLE, lambda client, _: push_all(client, TABLE), routes=[[0, 1]])


@pytest.mark.sampled(4)
def test_somebody_who_does_not_come_is_named() -> None:
    with group_of(1, 1, timeout=0.3) as group:
        with Proxy(group, 0) as proxy, pytest.raises(ProxyError, match=r"waited 0.3 s for client 0: start it"):
            proxy.run()
        with pytest.raises(ProxyError, match=r"proxy 0 at .* cannot be reached"):
            Client(group, 0, TABLE)
    said = r"proxy 1 at .* cannot be reached"
    with group_of(2, 1, timeout=0.3) as group, Proxy(group, 0) as proxy, pytest.raises(ProxyError, match=said):
        proxy.run()


def test_another_secret_is_refused() -> None:
    with group_of(1, 1) as group, Proxy(group, 0):
        other = ProxyGroup(group.addresses, 1, b"another that is long")
        with pytest.raises(ProxyError, match=r"proxy 0 at .* knows another secret"):
            Client(other, 0, TABLE)


def test_a_client_that_ends_with_a_step_half_pushed_is_named() -> None:
    def work(client: Client, number: int) -> None:
        client.push("a", np.ones(100, np.float32)).wait()
        if number == 0:
            client.push("b", np.ones(7, np.float32))
            client.end_step()

    with group_of(2, 2) as group, pytest.raises(ProxyError, match="client 1 left in the midst of step 0"):
        run_group(group, TABLE, work)


def test_others_hear_what_ended_a_client() -> None:
    def work(client: Client, number: int) -> None:
        client.push("a", np.ones(100, np.float32))
        client.push("c" if number else "b", np.ones(7, np.float32))
        client.end_step()

    why = "client 1 left in the midst of step 0: tensor 'c' is not registered"
    with group_of(2, 2) as group, pytest.raises(ProxyError, match=why):
        run_group(group, TABLE, work)


@pytest.mark.parametrize(
    ("error", "said"),
    [(KeyboardInterrupt(), "KeyboardInterrupt"), (SystemExit(3), "SystemExit 3"), (OSError(), "OSError")],
)
def test_what_ended_a_client_is_said_where_it_has_no_words(error: BaseException, said: str) -> None:
    def work(client: Client, number: int) -> None:
        client.push("a", np.ones(100, np.float32))
        if number:
            client.__exit__(type(error), error, None)
        else:
            client.end_step()

    with group_of(1, 2) as group, pytest.raises(ProxyError, match=f"client 1 left in the midst of step 0: {said}$"):
        run_group(group, TensorTable.of({"a": 100}, exponent=1), work)


def _welcome(server: socket.socket, secret: bytes) -> Channel:
    """The channel of a client that a proxy takes in, and no more."""
    channel = accept(server, LIMIT)
    admit(channel, secret, LIMIT)
    channel.send(Message(Kind.WELCOME))
    return channel


def test_a_client_whose_proxy_stands_still_leaves_and_tells_the_others() -> None:
    """The proxy takes in one part, and the next one finds no room in the socket."""
    table = TensorTable.of({"large": 1 << 22}, exponent=2)
    with group_of(2, 1) as group, ThreadPoolExecutor() as threads:
        servers = [listen(address) for address in group.addresses]
        welcomed = [threads.submit(_welcome, server, group.secret) for server in servers]
        client = Client(group, 0, table)
        still, other = (each.result(LIMIT) for each in welcomed)
        sum_of_it = client.push("large", np.ones(1 << 22, np.float32))
        with pytest.raises(ProxyError, match=r"is not there after 0 s: .*, or one of those who sum stands still"):
            sum_of_it.wait(0)
        client._timeout = 0.1
        leaving = threading.Thread(target=client.close, daemon=True)
        leaving.start()
        leaving.join(LIMIT / 8)
        assert not leaving.is_alive()
        with pytest.raises(ProxyError, match="client 0 left in the midst of step 0"):
            other.receive()
        for closed in (still, other, *servers):
            closed.close()


@pytest.mark.parametrize(
    ("kind", "group", "said"),
    [
        (Kind.READY, 1, "proxy 1 at .* says READY for shard .* of group 1, which proxy 1 at .* leads, not proxy 0 at"),
        (Kind.GO, 0, "proxy 1 at .* says GO for shard .* of group 0, which proxy 0 at .* leads, not proxy 1 at"),
        (Kind.READY, None, "proxy 1 at .* says READY for shard 9 of a table that has 2"),
        (Kind.GO, None, "proxy 1 at .* says GO for shard 9 of a table that has 2"),
    ],
    ids=["ready", "go", "ready of no shard", "go of no shard"],
)
def test_what_only_another_release_says_is_refused(
    kind: Kind, group: int | None, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shards = [shard for shard in range(len(TABLE.shards)) if TABLE.group(shard, 2) == group]
    message = Message(kind, shards[0] if group is not None else 9)
    complete = Proxy._ready_if_complete

    def tell(proxy: Proxy, shard: int) -> None:
        if proxy._number == 1:
            proxy._tell(proxy._found.peers[0], message)
        else:
            complete(proxy, shard)

    monkeypatch.setattr(Proxy, "_ready_if_complete", tell)
    with group_of(2, 1, groups=2) as proxies, pytest.raises(ProxyError, match=said):
        run_group(proxies, TABLE, _one_step)


@pytest.mark.parametrize(
    ("part", "name"),
    [(Proxy, "_set_up"), (Parts, "check"), (Parts, "end"), (Parts, "take"), (Leader, "ready"), (Leader, "done")],
    ids=lambda part: part if isinstance(part, str) else part.__name__,
)
def test_what_nobody_has_foreseen_is_told_to_everybody(part: type, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("by chance")

    monkeypatch.setattr(part, name, fail)
    with group_of(1, 2) as group, pytest.raises(ProxyError, match=r"proxy 0 failed: ZeroDivisionError\('by chance'\)"):
        run_group(group, TABLE, _one_step)


def _one_step(client: Client, _: int) -> None:
    step(client, {tensor.name: np.ones(tensor.numel, np.float32) for tensor in TABLE.tensors}, ["a", "b"])


@pytest.mark.parametrize(
    "wrong",
    [
        {"addresses": ()}, {"addresses": ("a/0", "a/0")}, {"clients": 0}, {"secret": b"short"}, {"sync": "tree"},
        {"groups": 0}, {"timeout": 0.0},
    ],
)  # fmt: skip
def test_groups_that_cannot_be(wrong: dict[str, object]) -> None:
    with pytest.raises(ProxyError):
        ProxyGroup(**{"addresses": ("a/0",), "clients": 1, "secret": b"long enough to use", **wrong})  # type: ignore[arg-type]


@contextmanager
def _processes(group: ProxyGroup, steps: int, path: Path) -> Iterator[tuple[list[subprocess.Popen[str]], ...]]:
    """Proxies by the command, clients by a script; what is left of them is killed."""
    facts = {"addresses": group.addresses, "clients": group.clients, "timeout": group.timeout}
    path.write_text(json.dumps({**facts, "secret": group.secret.decode()}))
    with ExitStack() as exits:

        def start(*words: str) -> subprocess.Popen[str]:
            process = subprocess.Popen(
                [sys.executable, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
            exits.callback(process.communicate)
            exits.callback(process.kill)
            return process

        proxies = [start("-m", "catchment.cli", "proxy", "run", str(path), str(n)) for n in range(len(group.addresses))]
        yield proxies, [start("-c", CLIENT, str(path), str(n), str(steps)) for n in range(group.clients)]


def test_processes_sum_and_end(tmp_path: Path) -> None:
    steps = 5
    with group_of(2, 3) as group, _processes(group, steps, tmp_path / "group.json") as (proxies, clients):
        for client in clients:
            out, errors = client.communicate(timeout=LIMIT)
            assert client.returncode == 0, errors
            found = [json.loads(line) for line in out.splitlines()]
            assert found == [[s, 75.0 * 2.0 ** -(s % 8), 5.25 * 2.0 ** -(s % 8)] for s in range(steps)]
        for proxy in proxies:
            _, errors = proxy.communicate(timeout=LIMIT)
            assert proxy.returncode == 0, errors


def test_a_proxy_that_is_killed_is_named_by_everybody(tmp_path: Path, rng: random.Random) -> None:
    killed = rng.randrange(3)
    with group_of(3, 3) as group, _processes(group, 10**9, tmp_path / "group.json") as (proxies, clients):
        for client in clients:
            assert client.stdout is not None
            assert client.stdout.readline()  # a step is done
        proxies[killed].send_signal(signal.SIGKILL)
        for process in [*clients, *(proxy for n, proxy in enumerate(proxies) if n != killed)]:
            _, errors = process.communicate(timeout=LIMIT)
            assert process.returncode not in {0, -signal.SIGKILL}
            said = " ".join(errors.split()).replace("│ ", "")
            assert f"proxy {killed} at" in said, said
            assert "is gone" in said, said
