"""Members as real processes: all begin together, and the first failure ends all, by name."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from catchment.sim.lab import events
from catchment.sim.lab.crew import Crew
from catchment.sim.lab.errors import LabError
from catchment.sim.lab.members import Command, ProcessMember, ThreadMember, member_environment

PREAMBLE = """import json, sys, time
def tell(event, **facts):
    print(json.dumps({"event": event, **facts}), flush=True)
def await_go():
    tell("ready")
    assert sys.stdin.readline() == "go\\n"
"""
WAITS = "await_go()\ntell('pass', index=0)\ntime.sleep(600)\n"


@pytest.fixture
def start(tmp_path: Path) -> Callable[..., ProcessMember]:
    def make(crew: Crew, name: str, program: str) -> ProcessMember:
        def popen(argv: list[str], **options: Any) -> subprocess.Popen[str]:
            return subprocess.Popen(argv, env=member_environment(), **options)

        command = Command((sys.executable, "-c", PREAMBLE + program), tmp_path / f"{name}.log")
        member = ProcessMember(name, command, popen, crew.deliver)
        crew.add(member)
        return member

    return make


def _gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_all_begin_together_and_hand_back_their_facts(start: Callable[..., ProcessMember]) -> None:
    heard: list[tuple[str, Any]] = []
    with Crew() as crew:
        for name in ("w0", "w1"):
            start(crew, name, f"await_go()\ntell('pass', index=0, who={name!r})\ntell('done', x={name!r})\n")
        done = crew.run(lambda name, event: heard.append((name, event["who"])))
    assert {name: event["x"] for name, event in done.items()} == {"w0": "w0", "w1": "w1"}
    assert sorted(heard) == [("w0", "w0"), ("w1", "w1")]


def _failure(
    start: Callable[..., ProcessMember],
    programs: dict[str, str],
    on_event: Callable[[str, dict[str, Any]], None] = lambda *_: None,
    **limits: float,
) -> tuple[str, dict[str, ProcessMember]]:
    """Run the programs as a crew that must fail: the message, and the members, which must all be gone."""
    members: dict[str, ProcessMember] = {}

    def together() -> None:
        with Crew(**limits) as crew:
            for name, program in programs.items():
                members[name] = start(crew, name, program)
            crew.run(lambda name, event: on_event(str(members[name].pid) if name == "w1" else name, event))

    with pytest.raises(LabError) as caught:
        together()
    assert all(_gone(member.pid) for member in members.values())
    return str(caught.value), members


def test_a_killed_member_is_named_and_the_others_are_ended(start: Callable[..., ProcessMember]) -> None:
    def kill_w1(pid: str, _event: dict[str, Any]) -> None:
        if pid.isdecimal():
            os.kill(int(pid), signal.SIGKILL)

    message, members = _failure(start, {"w0": WAITS, "w1": WAITS, "w2": WAITS}, kill_w1)
    assert message == f"w1: process {members['w1'].pid} was ended by SIGKILL"


def test_an_error_event_and_an_uncaught_exception_are_quoted(start: Callable[..., ProcessMember]) -> None:
    error = "await_go()\ntell('error', kind='X', text='no network today')\nsys.exit(1)"
    assert _failure(start, {"opt": error, "w0": WAITS})[0] == "opt: no network today"
    message, _ = _failure(start, {"w0": "await_go()\nraise ValueError('odd')"})
    assert re.fullmatch(r"w0: process \d+ ended with code 1: ValueError: odd \(see .*w0\.log\)", message)


def test_ending_without_being_done_and_nonsense_on_stdout(start: Callable[..., ProcessMember]) -> None:
    assert _failure(start, {"w0": "await_go()"})[0] == "w0: ended before it was done"
    message, _ = _failure(start, {"w0": "await_go()\nprint('hello', flush=True)\ntime.sleep(600)"})
    assert message.startswith("w0: not an event: 'hello")


def test_silence_and_a_member_that_never_gets_ready(start: Callable[..., ProcessMember]) -> None:
    silent = "await_go()\ntime.sleep(600)"
    assert "no member has reported anything" in _failure(start, {"w0": silent}, silence=0.2)[0]
    sleeper = "time.sleep(600)"
    assert _failure(start, {"w1": sleeper}, start_timeout=0.5)[0] == "not ready after 0.5 s: w1"


def test_members_end_when_the_orchestrator_is_gone() -> None:
    program = (
        "import time\nfrom catchment.sim.lab import events\nevents.await_go()\nevents.tell('pass')\ntime.sleep(600)"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=member_environment(),
    )
    assert child.stdin is not None
    assert child.stdout is not None
    assert events.parse(child.stdout.readline())["event"] == events.READY
    child.stdin.write(events.GO + "\n")
    child.stdin.flush()
    assert events.parse(child.stdout.readline())["event"] == events.PASS
    child.stdin.close()  # what the death of the orchestrator looks like
    assert child.wait(120) == 3
    child.stdout.close()


def test_threads_report_like_processes() -> None:
    def body(tell: Callable[..., None]) -> dict[str, Any]:
        tell(events.PASS, index=1)
        return {"x": 5}

    def broken(_tell: Callable[..., None]) -> dict[str, Any]:
        time.sleep(0)
        raise RuntimeError("odd")

    heard: list[int] = []
    with Crew() as crew:
        crew.add(ThreadMember("t", body, crew.deliver))
        assert crew.run(lambda _name, event: heard.append(event["index"]))["t"]["x"] == 5
    assert heard == [1]

    def together() -> None:
        with Crew() as crew:
            crew.add(ThreadMember("t", broken, crew.deliver))
            crew.run(lambda *_: None)

    with pytest.raises(LabError, match="t: odd"):
        together()
