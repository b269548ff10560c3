"""How the command that starts a switch on this machine is found, started, and complained of."""

from __future__ import annotations

import shlex
import sys
from contextlib import suppress
from copy import copy
from datetime import timedelta
from pathlib import Path
from time import monotonic, sleep

import pytest
import torch.distributed as dist

from catchment.host.collectives import CollectiveError
from catchment.host.torch.distributed import agreement, switch_command
from catchment.host.torch.distributed.agreement import Agreement
from catchment.host.torch.distributed.settings import Settings


def command(path: Path, body: str) -> Path:
    """An executable at `path` that runs the Python `body`."""
    path.write_text(f"#!{sys.executable}\nimport json, sys\n{body}\n")
    path.chmod(0o755)
    return path


def test_the_installed_command_is_found_beside_the_python_that_runs() -> None:
    assert switch_command.find(None) == [str(Path(sys.executable).parent / switch_command.COMMAND)]


def test_the_path_is_searched_where_the_python_has_no_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = command(tmp_path / switch_command.COMMAND, "")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "empty" / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert switch_command.find(None) == [str(elsewhere)]


def test_no_command_is_an_error_that_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CollectiveError, match=r"make setup.*CATCHMENT_LOCAL_SWITCH") as raised:
        switch_command.find(None)
    assert raised.value.kind == "system"


def test_a_given_command_that_is_none_does_not_fall_back_to_the_installed_one() -> None:
    given = Settings.of_environment({"CATCHMENT_LOCAL_SWITCH": "/nowhere/switch --slots 4"}).local_switch
    with pytest.raises(CollectiveError, match="CATCHMENT_LOCAL_SWITCH=/nowhere/switch --slots 4"):
        switch_command.start(2, given)


@pytest.mark.parametrize(("given", "why"), [("'switch", "No closing quotation"), (" ", "no words")])
def test_a_given_command_that_cannot_be_read_is_refused(given: str, why: str) -> None:
    with pytest.raises(CollectiveError, match=f"CATCHMENT_LOCAL_SWITCH={given} is no command.*{why}") as raised:
        switch_command.find(given)
    assert raised.value.kind == "argument"


def test_a_given_command_keeps_its_arguments_and_is_told_the_ranks(tmp_path: Path) -> None:
    body = 'print(json.dumps({"socket": " ".join(sys.argv[1:] + [sys.stdin.read()])}))'
    given = command(tmp_path / "a switch", body)
    started = switch_command.start(3, f"{shlex.quote(str(given))} --slots 4", below={"job": "train"})
    assert started == switch_command.Started('--slots 4 --ranks 3 --below - {"job": "train"}', ())


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("sys.exit('no room')", "code 1: no room"),
        ("print('hello', flush=True)", "hello"),
        ("print('[1]', flush=True)", "1"),
        ("print('{}', flush=True)", "{}"),
    ],
)
def test_a_command_that_is_no_switch_is_quoted(tmp_path: Path, body: str, said: str) -> None:
    given = command(tmp_path / "switch", body)
    with pytest.raises(CollectiveError, match="the switch for 2 ranks does not start") as raised:
        switch_command.start(2, str(given))
    assert said in str(raised.value)


def test_a_file_that_cannot_be_run_is_named(tmp_path: Path) -> None:
    given = tmp_path / "switch"
    given.write_text("neither a script nor a program")
    given.chmod(0o755)
    with pytest.raises(CollectiveError, match="does not start") as raised:
        switch_command.start(2, str(given))
    assert str(given) in str(raised.value)


def test_a_command_that_compiles_first_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    body = "print(json.dumps({'compiling': 'luwu.p4'}), flush=True)\nprint(json.dumps({'socket': 'here'}))"
    assert switch_command.start(2, str(command(tmp_path / "switch", body))).socket == "here"
    assert [record.getMessage() for record in caplog.records] == [
        "compiling luwu.p4 for the switch, once: this may take a minute or two"
    ]


@pytest.mark.parametrize("first", ["", "sys.stdout.write('{'); sys.stdout.flush()"])
def test_a_command_that_never_speaks_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str) -> None:
    """The process that it has started, which has the other end of what would be read, ends as well."""
    monkeypatch.setattr(switch_command, "MAKING", timedelta(seconds=3))
    told = tmp_path / "told"
    body = (
        f"import os, subprocess, time\n{first}\n"
        f"child = subprocess.Popen(['sleep', '600'])\n"
        f"open({str(told)!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}')\n"
        "time.sleep(600)"
    )
    with pytest.raises(CollectiveError, match=r"does not start.*it says nothing in 3 s") as raised:
        switch_command.start(2, str(command(tmp_path / "switch", body)))
    assert raised.value.kind == "system"
    for process in told.read_text().split():
        stat = Path(f"/proc/{process}/stat")
        with suppress(FileNotFoundError):
            until = monotonic() + 60
            while stat.read_text().rpartition(") ")[2][0] not in "ZX":
                assert monotonic() < until, f"process {process} goes on"
                sleep(0.01)


def test_what_stops_the_first_rank_is_every_ranks_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agreement, "MAKING", timedelta(seconds=5))
    first = Agreement(dist.HashStore(), 0, 1, timedelta(seconds=5))
    other = copy(first)
    other.rank = 1
    with pytest.raises(ZeroDivisionError):
        first.of_first("switch", lambda: 1 // 0)
    with pytest.raises(CollectiveError, match="rank 0 failed: ZeroDivisionError"):
        other.of_first("switch", lambda: None)
