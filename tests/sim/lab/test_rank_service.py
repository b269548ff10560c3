"""The service that makes groups on a switch of this machine: what it grants, what it refuses, what it takes back."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from catchment.checkout import ROOT
from catchment.sim.lab.rank_service import RankService

PATIENCE = 120.0
SIZE = 3


class Process:
    """A process's connection to the service."""

    def __init__(self, path: str, hello: object) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(PATIENCE)
        self._socket.connect(path)
        self._lines = self._socket.makefile("rb")
        self.say(hello)
        self.first = self.hear()

    def say(self, message: object) -> None:
        self._socket.sendall((message if isinstance(message, bytes) else json.dumps(message).encode()) + b"\n")

    def hear(self) -> dict[str, Any] | None:
        line = self._lines.readline()
        return json.loads(line) if line else None

    def make(self, name: str, ranks: object) -> dict[str, Any]:
        self.say({"make": name, "ranks": ranks})
        answer = self.hear()
        assert answer is not None and answer["made"] == name
        return answer

    def end(self) -> None:
        self._lines.close()
        self._socket.close()


@pytest.fixture
def path() -> Iterator[str]:
    command = [sys.executable, "-m", "catchment.sim.lab.local_switch", "--ranks", str(SIZE)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as service:
        try:
            assert service.stdout is not None
            while "socket" not in (told := json.loads(service.stdout.readline())):
                pass
            yield told["socket"]
        finally:
            service.kill()


@pytest.fixture
def processes(path: str) -> Iterator[list[Process]]:
    made = [Process(path, {"rank": rank}) for rank in range(SIZE)]
    yield made
    for process in made:
        process.end()


def test_a_group_has_its_ranks_in_their_order(processes: list[Process]) -> None:
    made = processes[1].make("pair", [2, 0])["members"]
    assert [member["wid"] for member in made] == [0, 1]
    ports = [process.first["port"] for process in processes if process.first is not None]
    assert [member["port"] for member in made] == [ports[2], ports[0]]
    assert len({member["sums"]["gen"] for member in made}) == 1


def test_what_is_no_list_of_ranks_is_refused_and_harms_nobody(processes: list[Process]) -> None:
    wrong: list[object] = [None, 2, "01", [], [0, 0], [0, 3], [-1, 0], [True, False], [0.0, 1], [[0], 1], {"0": 1}]
    for ranks in [*wrong, list(range(40))]:
        assert "refused" in processes[0].make("wrong", ranks), ranks
    assert "members" in processes[0].make("wrong", [0, 1])


def test_who_is_no_rank_is_refused(path: str) -> None:
    for hello in ({"rank": SIZE}, {"rank": -1}, {"rank": True}, {"rank": "0"}, {}, [], b"{", b"\xff"):
        stranger = Process(path, hello)
        assert stranger.first is not None and "refused" in stranger.first, hello
        assert stranger.hear() is None
        stranger.end()


def test_a_name_is_one_groups(processes: list[Process]) -> None:
    assert "members" in processes[0].make("one", [0, 1])
    assert "already" in processes[1].make("one", [1, 2])["refused"]


def test_a_full_switch_says_so_and_has_room_again(processes: list[Process]) -> None:
    made = 0
    while "members" in (answer := processes[0].make(f"group{made}", [0, 1])):
        made += 1
    assert made == 64 and "64 streams" in answer["refused"]
    for rank in (0, 1):
        processes[rank].say({"left": "group7"})
    # What another connection has said may be read later than what this one says.
    while "refused" in processes[1].make("again", [1, 2]):
        pass


def test_a_group_that_is_left_by_all_is_gone_and_nobody_can_leave_for_another(processes: list[Process]) -> None:
    assert "members" in processes[0].make("kept", [0, 1])
    processes[2].say({"left": "kept"})  # it is no member
    processes[0].say({"left": "nothing"})
    processes[0].say({"left": "kept"})
    assert "already" in processes[0].make("kept", [0, 1])["refused"]
    processes[1].say({"left": "kept"})
    assert "members" in processes[1].make("other", [0, 1])  # so the word before it was read
    assert "members" in processes[0].make("kept", [0, 1])


def test_a_process_that_ends_is_told_and_leaves_its_groups(processes: list[Process]) -> None:
    assert "members" in processes[0].make("both", [0, 2])
    processes[2].end()
    assert processes[0].hear() == {"lost": 2}
    assert processes[1].hear() == {"lost": 2}
    processes[0].say({"left": "both"})
    assert "members" in processes[0].make("both", [0, 1])


def test_a_group_of_a_rank_that_has_gone_is_refused(processes: list[Process]) -> None:
    """That rank would never leave it: the group and its slots would stay for as long as the switch lives."""
    processes[2].end()
    assert processes[0].hear() == {"lost": 2}
    assert "rank 2 has gone" in processes[0].make("late", [0, 2])["refused"]
    assert "members" in processes[0].make("late", [0, 1])


def test_a_group_may_have_a_rank_that_has_yet_to_come(path: str) -> None:
    first = Process(path, {"rank": 0})
    assert "members" in first.make("early", [0, 1])
    first.end()


def test_a_process_that_does_not_read_is_lost(processes: list[Process]) -> None:
    talker, reader, _ = processes
    told = {"tell": "x" * 60_000, "hosts": []}
    for number in range(1000):  # 60 MB
        talker.say(told)
        heard = reader.hear()
        if heard == {"lost": 2}:
            break
        assert heard == {"told": told["tell"], "hosts": []}
        assert number < 999, "all of it waits in the service's memory"
    assert talker.hear() == {"lost": 2}
    assert "members" in talker.make("pair", [0, 1])  # those that read go on


def test_what_a_process_tells_the_others_hear(processes: list[Process]) -> None:
    processes[2].say({"tell": "w3 is lost", "hosts": ["w3"]})
    assert processes[0].hear() == processes[1].hear() == {"told": "w3 is lost", "hosts": ["w3"]}
    assert processes[2].make("pair", [1, 2])["members"]  # the next that it hears


@pytest.mark.parametrize(
    "nonsense",
    [b"x" * 100_000, b"[" * 60_000, {"tell": "w3 is lost", "hosts": 3}, {"tell": "", "hosts": None}],
    ids=["long", "deep", "no hosts", "null"],
)
def test_a_line_without_end_or_sense_ends_the_connection_alone(processes: list[Process], nonsense: object) -> None:
    processes[1].say(nonsense)
    assert "refused" in (processes[1].hear() or {})
    assert processes[0].hear() == {"lost": 1}
    assert "members" in processes[0].make("rest", [0, 2])


def test_what_nobody_has_foreseen_is_told_to_the_others_as_a_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(RankService, "_leave", fail)
    socket_file = tmp_path / "socket"

    async def ranks() -> None:
        service = await started(socket_file)
        (_, failing), (heard, watching) = [await seated(socket_file, rank) for rank in (0, 1)]
        failing.write(b'{"left": "x"}\n')
        assert json.loads(await heard.readline()) == {"lost": 0}
        watching.write(b'{"goodbye": true}\n')
        watching.close()
        monkeypatch.undo()
        await service

    asyncio.run(asyncio.wait_for(ranks(), PATIENCE))


def test_the_end_waits_for_no_connection_that_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def for_ever(_: asyncio.Server) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(asyncio.Server, "wait_closed", for_ever)  # as since Python 3.12, while one stands
    socket_file = tmp_path / "socket"

    async def ranks() -> None:
        service = await started(socket_file)
        _, silent = await asyncio.open_unix_connection(socket_file)
        _, last = await seated(socket_file, 0)
        last.write(b'{"goodbye": true}\n')
        last.close()
        await asyncio.wait_for(service, PATIENCE)
        silent.close()

    asyncio.run(ranks())


@pytest.mark.parametrize(
    ("code", "output", "words"),
    [
        (-signal.SIGKILL, "catchment-switch: listening on unix:a\n", "has ended with SIGKILL"),
        (
            -signal.SIGABRT,
            "catchment-switch: listening on unix:a\n"
            "catchment-switch: ending: a thread cannot go on: memory has ended. Give it more memory\nAborted\n",
            "has ended with SIGABRT: memory has ended. Give it more memory",
        ),
    ],
)
def test_ranks_hear_the_last_words_of_the_switch(tmp_path: Path, code: int, output: str, words: str) -> None:
    socket_file = tmp_path / "socket"

    async def ranks() -> None:
        lab = NoLab()
        lab.output, lab.code = output, code
        reading, writing = os.pipe()
        lab.end = reading
        service = await started(socket_file, lab)
        seats = [await seated(socket_file, rank) for rank in range(2)]
        os.close(writing)  # its end is an event
        for reader, writer in seats:
            said = json.loads(await asyncio.wait_for(reader.readline(), PATIENCE))
            assert said["ended"].endswith(words) and f"process {lab.pid} on" in said["ended"]
            writer.close()
        await asyncio.wait_for(service, PATIENCE)

    asyncio.run(ranks())


class NoLab:
    """A lab of two ranks whose switch is this process."""

    pid, code, output, end = 7, 0, "", -1

    def __init__(self) -> None:
        self.switch = self

    def path(self, host: str) -> Path:
        return Path("/nowhere") / host

    def end_descriptor(self) -> int:
        return os.pidfd_open(os.getpid()) if self.end < 0 else self.end

    def stop(self) -> int:
        return self.code


async def served(path: Path, lab: NoLab) -> None:
    await RankService(lab, ("w0", "w1"), slots=4, path=path, patience=PATIENCE).serve("")  # type: ignore[arg-type]


async def started(path: Path, lab: NoLab | None = None) -> asyncio.Task[None]:
    """A service that listens at a path."""
    service = asyncio.create_task(served(path, lab or NoLab()))
    while not path.exists():
        await asyncio.sleep(0.01)
    return service


async def seated(path: Path, rank: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_unix_connection(path)
    writer.write(json.dumps({"rank": rank}).encode() + b"\n")
    assert "port" in json.loads(await reader.readline())
    return reader, writer
