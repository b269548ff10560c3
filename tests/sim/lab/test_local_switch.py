"""The switch of one machine's processes leaves nothing behind."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from catchment.checkout import ROOT
from catchment.host.collectives import Communicator
from catchment.sim.lab import local_switch
from catchment.sim.lab.local_switch import SLOTS, SLOTS_OF_SHARERS
from catchment.wire.socket_folder import socket_folder

_APP = typer.Typer()
_APP.command()(local_switch.local_switch)


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A folder of temporary files that has room for a socket's path."""
    with socket_folder() as folder:
        yield Path(folder)


def _socket_of(service: subprocess.Popen[bytes]) -> str:
    """The address at which a local switch serves, once it does; before that it may say what it compiles."""
    assert service.stdout is not None
    for line in service.stdout:
        said = json.loads(line)
        if "socket" in said:
            return str(said["socket"])
    raise AssertionError("the local switch ended")


@contextmanager
def _local_switch(
    folder: Path, ranks: int, by: Sequence[str] = ()
) -> Iterator[tuple[subprocess.Popen[bytes], ExitStack]]:
    """A local switch whose temporary files are in `folder`, started by another command; it ends with the stack."""
    command = [*by, sys.executable, "-m", "catchment.sim.lab.local_switch", "--ranks", str(ranks)]
    environment = {**os.environ, "TMPDIR": str(folder)}
    with ExitStack() as exits, subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT, env=environment) as service:
        exits.callback(service.kill)
        yield service, exits


def _connection(path: str, number: int, exits: ExitStack) -> socket.SocketIO:
    """The connection of a rank that has got its port; what it makes lasts as long as `exits`."""
    rank = exits.enter_context(socket.socket(socket.AF_UNIX))
    rank.connect(path)
    line = exits.enter_context(rank.makefile("rwb", buffering=0))
    line.write(b'{"rank": %d}\n' % number)
    assert "port" in json.loads(line.readline())
    return line


def _rank_0_of(service: subprocess.Popen[bytes], exits: ExitStack) -> socket.SocketIO:
    """The connection of rank 0."""
    return _connection(_socket_of(service), 0, exits)


def _make(line: socket.SocketIO, group: str) -> dict[str, Any]:
    """What is answered to a rank that makes a group of two."""
    line.write(json.dumps({"make": group, "ranks": [0, 1]}).encode() + b"\n")
    answer: dict[str, Any] = json.loads(line.readline())
    return answer


def _members_of_a_pair(service: subprocess.Popen[bytes], exits: ExitStack) -> list[dict[str, Any]]:
    """What the two ranks of a group need, which rank 0 asks for; the group lasts as long as `exits`."""
    members: list[dict[str, Any]] = _make(_rank_0_of(service, exits), "pair")["members"]
    return members


def test_a_killed_local_switch_takes_its_switch_along() -> None:
    command = [sys.executable, "-m", "catchment.sim.lab.local_switch", "--ranks", "2"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as service:
        try:
            _socket_of(service)
            children = [task / "children" for task in Path(f"/proc/{service.pid}/task").iterdir()]
            (switch,) = [int(pid) for path in children for pid in path.read_text().split()]
            ended = os.pidfd_open(switch)
        finally:
            service.kill()
    assert select.select([ended], [], [], 60)[0], f"process {switch} goes on"
    os.close(ended)


@pytest.mark.slow
def test_a_local_switch_starts_where_temporary_files_have_a_long_path(tmp_path: Path) -> None:
    """Slurm and CI systems set such a TMPDIR; a socket's path has 107 bytes."""
    folder = tmp_path / ("long" * 25)
    folder.mkdir()
    command = [sys.executable, "-m", "catchment.sim.lab.local_switch", "--ranks", "2"]
    environment = {**os.environ, "TMPDIR": str(folder)}
    with ExitStack() as exits, subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT, env=environment) as service:
        exits.callback(service.kill)
        path = _socket_of(service)
        with socket.socket(socket.AF_UNIX) as rank:
            rank.connect(path)


def test_nothing_is_left_of_a_local_switch_that_is_killed(short_path: Path) -> None:
    """The moment at which all ranks have attached; before that a rank needs the files to find it."""
    with _local_switch(short_path, 2) as (service, exits):
        path = _socket_of(service)
        assert Path(path).is_relative_to(short_path)
        lines = [_connection(path, number, exits) for number in range(2)]
        for line in lines:
            line.write(b'{"attached": true}\n')
        lines[0].write(b'{"make": "pair", "ranks": [0, 1]}\n')
        lines[1].write(b'{"make": "other", "ranks": [0, 1]}\n')
        for line in lines:  # answered after what was said before
            line.readline()
        service.kill()
        service.wait()
    assert list(short_path.iterdir()) == []


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGHUP])
def test_nothing_is_left_of_a_local_switch_that_ends_as_it_starts(short_path: Path, sign: signal.Signals) -> None:
    with _local_switch(short_path, 2, by=["env", "--default-signal=HUP"]) as (service, _):
        until = time.monotonic() + 60
        while not list(short_path.glob("catchment-*/*")):
            assert time.monotonic() < until, "it makes no socket"
            time.sleep(0.001)
        service.send_signal(sign)
        service.wait(60)
    assert list(short_path.iterdir()) == []


def test_nothing_is_left_of_a_local_switch_whose_terminal_closes(short_path: Path) -> None:
    """The signal comes more than once, from the shell and from the kernel; here until the end."""
    with _local_switch(short_path, 2, by=["env", "--default-signal=HUP"]) as (service, exits):
        assert Path(_socket_of(service)).is_relative_to(short_path)
        end = os.pidfd_open(service.pid)
        exits.callback(os.close, end)
        until = time.monotonic() + 60
        while not select.select([end], [], [], 0.001)[0]:
            assert time.monotonic() < until, "it lives on"
            signal.pidfd_send_signal(end, signal.SIGHUP)
        assert service.wait() == 0
    assert list(short_path.iterdir()) == []


def test_a_local_switch_that_ignores_hang_ups_lives_on(short_path: Path) -> None:
    """All ranks find it after a hang-up, as below nohup, and it ends behind the last of them."""
    with _local_switch(short_path, 9, by=["env", "--ignore-signal=HUP"]) as (service, _):
        path = _socket_of(service)
        service.send_signal(signal.SIGHUP)
        with ExitStack() as connections:
            for rank in range(9):
                _connection(path, rank, connections)
        assert service.wait(60) == 0
    assert list(short_path.iterdir()) == []


@pytest.mark.parametrize(("setting", "inside"), [({}, 1), ({"CATCHMENT_IN_CALLERS": "0"}, 0)])
def test_ranks_run_the_switch_s_program_unless_told_otherwise(
    setting: dict[str, str], inside: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CATCHMENT_IN_CALLERS", raising=False)
    command = [sys.executable, "-m", "catchment.sim.lab.local_switch", "--ranks", "2"]
    environment = os.environ | setting
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT, env=environment) as service, ExitStack() as exits:
        exits.callback(service.kill)
        members = _members_of_a_pair(service, exits)
        ranks = [exits.enter_context(Communicator.of_job(member)) for member in members]
        arrays = [np.arange(3000, dtype=np.float32) * (number + 1) for number in range(2)]
        for work in [each.all_reduce(array) for each, array in zip(ranks, arrays, strict=True)]:
            work.wait(60.0)
        assert all(np.array_equal(array, np.arange(3000, dtype=np.float32) * 3) for array in arrays)
        assert [each.stats()["in_callers"] for each in ranks] == [inside, inside]


@pytest.mark.parametrize(("in_callers", "slots"), [(True, SLOTS_OF_SHARERS), (False, SLOTS)])
def test_groups_have_as_many_vectors_in_flight_as_suits_who_runs_the_program(
    slots: int, monkeypatch: pytest.MonkeyPatch, *, in_callers: bool
) -> None:
    monkeypatch.setenv("CATCHMENT_IN_CALLERS", str(int(in_callers)))
    command = [sys.executable, "-m", "catchment.sim.lab.local_switch", "--ranks", "2"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as service, ExitStack() as exits:
        exits.callback(service.kill)
        members = _members_of_a_pair(service, exits)
        assert [member["sums"]["slots"] for member in members] == [slots] * 2


def test_64_groups_have_room_and_57_of_them_all_their_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CATCHMENT_IN_CALLERS", raising=False)
    command = [sys.executable, "-m", "catchment.sim.lab.local_switch", "--ranks", "2"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as service, ExitStack() as exits:
        exits.callback(service.kill)
        line = _rank_0_of(service, exits)
        made = [_make(line, f"g{number}")["members"] for number in range(64)]
        slots = [{member["sums"]["slots"] for member in members} for members in made]
        assert slots == [{SLOTS_OF_SHARERS}] * 57 + [{SLOTS_OF_SHARERS // 2}] * 7
        assert "holds 64 streams" in _make(line, "one more")["refused"]


def test_a_local_switch_starts_without_what_an_endpoint_needs() -> None:
    """Every first group of torchrun's waits for it; numpy alone would be a fifth of that."""
    program = "import sys, catchment.sim.lab.local_switch; print([n for n in ('numpy', 'torch') if n in sys.modules])"
    run = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


_PLACE: dict[str, Any] = {
    "job": "train",
    "kind": "allreduce",
    "wid": 0,
    "local": ["127.0.0.1", 40000],
    "switch": ["127.0.0.1", 51836],
    "sums": {"gen": 1, "workers": 2, "slots": 64, "lanes": 64, "param_bytes": 1408},
}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--slots", "100"], "100 is no power of two"),
        (["--slots", "0"], "0 is no power of two"),
        (["--slots", "-8"], "-8 is no power of two"),
        (["--patience", "nan"], "nan is no number of seconds"),
        (["--patience", "-1"], "-1.0 is no number of seconds"),
        *(
            (["--below", json.dumps({**_PLACE, **wrong})], "not what `catchment job show --json` says")
            for wrong in (
                {"wid": "0"},
                {"local": "127.0.0.1:40000"},
                {"local": ["127.0.0.1"]},
                {"switch": ["switch", 51836]},
                {"switch": ["127.0.0.1", 0]},
                {"sums": 1024},
                {"sums": {**_PLACE["sums"], "lanes": "64"}},
                {"sums": {**_PLACE["sums"], "lanes": 65}},
                {"sums": {**_PLACE["sums"], "slots": None}},
                {"sums": {**_PLACE["sums"], "key": 7}},
                {"kind": None},
            )
        ),
        (["--below", "[1]"], "not what `catchment job show --json` says"),
        (["--below", "{"], "not what `catchment job show --json` says"),
    ],
)
def test_options_that_are_none_are_refused_in_words(arguments: list[str], said: str) -> None:
    run = CliRunner().invoke(_APP, arguments)
    assert run.exit_code == 2
    assert said in " ".join(run.output.replace("\u2502", " ").split())


def test_what_a_job_says_of_a_worker_is_a_place() -> None:
    described = {**_PLACE, "host": "w0", "switch_name": "s1"}
    assert local_switch._place(json.dumps(described)) == described
    assert local_switch._place("") == {}
