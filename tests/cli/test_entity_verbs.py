"""`catchment table`, `group`, `clone`, `counter`, `register`, `meter` on running switches, embedded and BMv2."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from catchment import cli
from catchment.cli import complete
from catchment.controlplane.client import SwitchClient
from catchment.controlplane.programs.cache import cache_folder, compile_for
from catchment.controlplane.topology import Target
from catchment.sim.lab.held_address import HeldAddress
from catchment.sim.lab.switch_process import COMMANDS, start_switch
from catchment.softswitch.process import SwitchProcess

PROGRAMS = Path(__file__).parents[1] / "softswitch" / "server"
BMV2 = shutil.which("simple_switch_grpc") is not None and shutil.which("p4c-bm2-ss") is not None
TARGETS = [
    Target.EMBEDDED,
    pytest.param(Target.BMV2, marks=pytest.mark.skipif(not BMV2, reason="BMv2 and p4c are not on the PATH")),
]

Run = Callable[..., str]
GOOD = "tables:\n  lpm_t:\n  - {match: {address: 10.0.0.0/8}, action: NoAction}\n"
"""The beginning of a document that the switch would take."""


@pytest.fixture(params=TARGETS)
def target(request: pytest.FixtureRequest) -> Target:
    chosen: Target = request.param
    return chosen


@pytest.fixture(autouse=True)
def _environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CATCHMENT_RUN_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("CATCHMENT_TIMEOUT", "60")
    monkeypatch.delenv("CATCHMENT_TOPOLOGY", raising=False)
    monkeypatch.setattr(complete, "_TIMEOUT", 60.0)


@pytest.fixture
def start(target: Target, tmp_path: Path, held: HeldAddress) -> Iterator[Callable[[str], str]]:
    """Starts a switch with a program; returns its address."""
    processes = []

    def start_one(program: str) -> str:
        config = compile_for(target, PROGRAMS / f"{program}.p4", {})
        command = COMMANDS[target](held.address, 1, {})
        process = start_switch(program, command, log=tmp_path / f"{program}.log", environment=os.environ)
        processes.append(process)
        with SwitchClient.connect(held.address, timeout=60.0) as client:
            client.push_pipeline(config)
        return held.address

    yield start_one
    for process in processes:
        process.stop()


@pytest.fixture
def run(call: Run) -> Run:
    return call


def as_json(run: Run, *words: str) -> Any:
    return json.loads(run(*words, "--json"))


def fill(run: Run, at: str, target: Target) -> None:
    run("table", "add", at, "exact_t", "dst=02:00:00:00:00:01", "ingress_port=3", "forward", "port=4")
    run("table", "add", at, "exact_t", "dst=10:20:30:40:50:59", "ingress_port=3", "to_controller", "reason=7")
    run("table", "add", at, "lpm_t", "address=10.1.0.0/16", "set_lpm", "value=16")
    run("table", "add", at, "ternary_t", "kind=1&&&0xff", "number=9", "set_ternary", "value=1", "--priority", "5")
    run("table", "add", at, "range_t", "number=7..9", "set_range", "value=2", "--priority", "1")
    run("table", "add", at, "keyless_t", "--default", "set_default", "value=99")
    run("group", "create", at, "7", "1", "2:5")
    # BMv2's P4Runtime server refuses sessions that cut clones short.
    run("clone", "create", at, "5", "3", *(["--length", "64"] if target is Target.EMBEDDED else []))


@pytest.mark.sampled(4)
def test_what_was_dumped_is_loaded_again(start: Callable[[str], str], run: Run, target: Target, tmp_path: Path) -> None:
    at = start("kinds")
    fill(run, at, target)
    first = run("table", "dump", at)
    assert "10:20:30:40:50:59" in first
    assert len([line for line in first.splitlines() if line.startswith("  - {match")]) == 5  # one line an entry
    dump = tmp_path / "before.yaml"
    dump.write_text(first)
    run("table", "load", at, str(dump))
    assert run("table", "dump", at) == first

    # What somebody does by hand in the meantime ...
    run("table", "modify", at, "lpm_t", "address=10.1.0.0/16", "set_lpm", "value=17")
    run("table", "delete", at, "range_t", "number=7..9", "--priority", "1")
    run("table", "add", at, "lpm_t", "address=10.2.0.0/16", "set_lpm", "value=18")
    run("table", "add", at, "wide_t", "wide=5", "set_wide", "value=1", "unused=2")
    run("table", "delete", at, "keyless_t", "--default")
    run("group", "modify", at, "7", "4")
    run("group", "create", at, "8", "1")
    run("clone", "delete", at, "5")
    assert run("table", "dump", at) != first
    # ... is put right, and only that.
    changes = as_json(run, "table", "load", at, str(dump), "--replace")
    assert changes == {"inserted": 2, "modified": 3, "deleted": 3, "unchanged": 3}
    assert run("table", "dump", at) == first
    other = tmp_path / "before.json"
    run("table", "dump", at, "--json", "-o", str(other))
    assert yaml.safe_load(other.read_text())["tables"].keys() == yaml.safe_load(first)["tables"].keys()
    assert as_json(run, "table", "load", at, str(other), "--replace") == {
        "inserted": 0, "modified": 0, "deleted": 0, "unchanged": 8,
    }  # fmt: skip


def test_entries_of_profiles_and_meters_survive(
    start: Callable[[str], str], run: Run, target: Target, tmp_path: Path
) -> None:
    at = start("extras")
    document = tmp_path / "profiles.yaml"
    watch = ", watch_port: 3" if target is Target.EMBEDDED else ""  # BMv2 gives one member's to all
    document.write_text(
        f"""\
format: 1
profiles:
  groups:
    members:
      1: {{action: set_group, params: {{value: 101}}}}
      2: {{action: set_group, params: {{value: 102}}}}
    groups:
      7: {{max_size: 8, members: [{{member: 1, weight: 1}}, {{member: 2, weight: 3{watch}}}]}}
tables:
  group_t:
  - {{match: {{flow: 5}}, group: 7}}
  - {{match: {{flow: 6}}, member: 2}}
meters:
  flow_meter:
    2: {{cir: 1, cburst: 3, pir: 2, pburst: 5}}
"""
    )
    assert run("table", "load", at, str(document)) == "5 inserted, 1 modified, 0 deleted, 0 unchanged\n"
    dumped = tmp_path / "dumped.yaml"
    run("table", "dump", at, "-o", str(dumped))
    assert yaml.safe_load(dumped.read_text())["profiles"] == yaml.safe_load(document.read_text())["profiles"]
    assert as_json(run, "table", "load", at, str(dumped), "--replace")["unchanged"] == 6
    run("table", "add", at, "group_t", "flow=8", "member=1")
    shown = run("table", "list", at, "group_t")
    assert "member" in shown
    assert as_json(run, "meter", "list", at) == {"flow_meter": {"2": {"cir": 1, "cburst": 3, "pir": 2, "pburst": 5}}}
    run("meter", "set", at, "flow_meter", "0..1", "--cir", "10", "--cburst", "20")
    assert as_json(run, "meter", "list", at)["flow_meter"].keys() == {"0", "1", "2"}
    run("table", "load", at, str(document), "--replace")
    run("meter", "clear", at, "flow_meter")
    empty = tmp_path / "empty.yaml"
    empty.write_text("format: 1\n")
    assert as_json(run, "table", "load", at, str(empty), "--replace")["deleted"] == 5
    assert run("table", "dump", at) == "format: 1\n"


def test_a_multicast_groups_metadata_survive(
    start: Callable[[str], str], run: Run, target: Target, tmp_path: Path
) -> None:
    if target is Target.BMV2:
        pytest.skip("BMv2 takes metadata of a multicast group, and keeps none")
    at = start("kinds")
    document = tmp_path / "groups.yaml"
    document.write_text(
        """\
format: 1
multicast_groups:
  7: {replicas: [{port: 1}, {port: 2, instance: 5}], metadata: '0012'}
  8: [{port: 3}]
"""
    )
    assert run("table", "load", at, str(document)) == "2 inserted, 0 modified, 0 deleted, 0 unchanged\n"
    assert yaml.safe_load(run("table", "dump", at)) == yaml.safe_load(document.read_text())
    assert as_json(run, "table", "load", at, str(document), "--replace")["unchanged"] == 2
    run("group", "modify", at, "7", "4")
    run("group", "modify", at, "8", "4")
    assert yaml.safe_load(run("table", "dump", at))["multicast_groups"] == {
        7: {"replicas": [{"port": 4}], "metadata": "0012"},
        8: [{"port": 4}],
    }
    document.write_text(document.read_text().replace("0012", "0013"))
    assert as_json(run, "table", "load", at, str(document))["modified"] == 2
    assert "0013" in run("table", "dump", at)
    assert "NOT_FOUND" in run("group", "modify", at, "9", "4", code=1)


@pytest.mark.sampled(4)
def test_counters_and_registers(start: Callable[[str], str], run: Run, target: Target) -> None:
    at = start("kinds")
    fill(run, at, target)
    assert {"counter": "by_port", "cells": 16, "unit": "bytes and packets"} in as_json(run, "counter", "list", at)
    assert [cell["index"] for cell in as_json(run, "counter", "read", at, "by_port", "2..4")] == [2, 3, 4]
    assert as_json(run, "counter", "read", at, "by_port", "--nonzero") == []
    assert len(as_json(run, "counter", "read", at, "exact_t")) == 2
    run("counter", "clear", at, "by_port", "3")
    run("counter", "clear", at, "exact_t")
    assert "0..15" in run("counter", "read", at, "by_port", "16", code=1)
    assert "tables with counters: exact_t" in run("counter", "read", at, "nothing", code=1)

    if target is Target.BMV2:
        assert "simple_switch_CLI" in run("register", "read", at, "cells", code=1)
        assert "simple_switch_CLI" in run("register", "write", at, "cells", "1=2", code=1)
        return
    run("register", "write", at, "cells", "3=7", "8..9=0xff")
    assert as_json(run, "register", "read", at, "cells", "--nonzero") == {"3": 7, "8": 255, "9": 255}
    assert as_json(run, "register", "read", at, "cells", "2..3") == {"2": 0, "3": 7}
    run("register", "write", at, "signed_cells", "1=-5")
    assert as_json(run, "register", "read", at, "signed_cells", "1") == {"1": -5}
    assert "signed number of 12 bits" in run("register", "write", at, "signed_cells", "1=2048", code=1)
    assert "does not fit in 32 bits" in run("register", "write", at, "cells", f"1={1 << 32}", code=1)
    assert "INDEX=VALUE" in run("register", "write", at, "cells", "seven", code=1)
    assert {"register": "cells", "cells": 64, "bits": 32} in as_json(run, "register", "list", at)


def test_groups_and_sessions_are_listed(start: Callable[[str], str], run: Run, target: Target) -> None:
    at = start("kinds")
    fill(run, at, target)
    assert as_json(run, "group", "list", at) == [
        {"group": 7, "replicas": [{"port": 1, "instance": 0}, {"port": 2, "instance": 5}]}
    ]
    assert as_json(run, "clone", "list", at) == [
        {
            "session": 5,
            "replicas": [{"port": 3, "instance": 0}],
            "packet_length": 64 if target is Target.EMBEDDED else 0,
        }
    ]
    assert "ALREADY_EXISTS" in run("group", "create", at, "7", "1", code=1)
    assert "NOT_FOUND" in run("group", "delete", at, "9", code=1)
    assert "3:1" in run("group", "create", at, "9", "three", code=1)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tables: {}", "format: 1"),
        ("format: 1\ntabels: {}", "tabels"),
        ("format: 1\ntables: {lpm_t: {}}", "tables.lpm_t"),
        ("format: 1\ntables: {lpm_t: [{prio: 3}]}", "tables.lpm_t[0]: unknown: prio"),
        ("format: 1\ntables: {lpm_t: [{action: set_lpm}]}", "missing: value"),
        ("format: 1\ntables: {nothing: [{action: set_lpm}]}", "nothing"),
        (
            "format: 1\ntables: {lpm_t: [{action: NoAction}, {action: set_lpm, params: {value: 2}}]}",
            "tables.lpm_t[1]: has the key of tables.lpm_t[0]",
        ),
        ("format: 1\nmulticast_groups: {7: [{prot: 1}]}", "multicast_groups[7]"),
        ("format: 1\nclone_sessions: {7: {}}", "clone_sessions[7]: 'replicas' is missing"),
        ("format: 1\ntables: {a: [], a: []}", "2: tables.a is given twice (first in line 2)"),
        ("format: [", "not YAML"),
        ("format: 1\nmulticast_groups: {7: [], 0x7: []}", "2: multicast_groups.0x7 is given twice (first in line 2)"),
        (
            "format: 1\ntables:\n  lpm_t:\n  - {action: NoAction}\n  -\n    action: set_lmp\n",
            "wrong.yaml:6: tables.lpm_t[1]: no",
        ),
        (
            "format: 1\ntables:\n  lpm_t:\n  - {action: set_lpm, params: {value: 1 << 99}}",
            "wrong.yaml:4: tables.lpm_t[0]",
        ),
        ("format: 1\ndefaults:\n  lpm_t: {action: nothing}", "wrong.yaml:3: defaults.lpm_t: no action 'nothing'"),
        ("format: 1\nmulticast_groups:\n  7: [{prot: 1}]", "wrong.yaml:3: multicast_groups[7]"),
        ("format: 1\ntables: {}\ntabels: {}", "wrong.yaml:3: tabels"),
        ("format: 1\n\ntables: {lpm_t: [}", "wrong.yaml:3: not YAML"),
        ("format: 1\ntables:\n  lpm_t: [{match: {address: null}, action: NoAction}]", "tables.lpm_t[0]: address: None"),
        ("format: 1\ntables:\n  lpm_t: [{action: set_lpm, params: {value: []}}]", "tables.lpm_t[0]: value: []"),
        ("format: 1\ntables:\n  lpm_t: [{action: set_lpm, params: {1: 2}}]", "tables.lpm_t[0]: 1: 2"),
        (
            "format: 1\ntables:\n  ternary_t: [{match: {number: 1}, priority: 99999999999, action: NoAction}]",
            "ternary_t[0]: priority: 99999999999 is not between 0 and 2147483647",
        ),
        ("format: 1\nclone_sessions:\n  7: {replicas: [], packet_length: null}", "wrong.yaml:3: clone_sessions[7]"),
        ("format: 1\nclone_sessions:\n  7: {replicas: [{port: -1}]}", "[7]: port: -1 is not between 0 and"),
        ("format: 1\nmulticast_groups:\n  7: [{port: true}]", "wrong.yaml:3: multicast_groups[7]"),
        ("format: 1\nmulticast_groups:\n  7: 3", "wrong.yaml:3: multicast_groups[7]"),
        (
            "format: 1\nmulticast_groups: {7: {replicas: [], meta: 1}}",
            "multicast_groups[7]: unknown: meta; a group has",
        ),
        ("format: 1\nmulticast_groups: {7: {metadata: 00ff}}", "multicast_groups[7]: 'replicas' is missing"),
        ("format: 1\nmulticast_groups: {7: {replicas: [], metadata: 0f0}}", "multicast_groups[7]: metadata: '0f0' is"),
        ("format: 1\ntables:\n  lpm_t: [{action: NoAction, metadata: xyz}]", "tables.lpm_t[0]: metadata: 'xyz' is not"),
        (
            f"format: 1\n{GOOD}  ternary_t:\n  - {{match: {{kind: 1&&&255, number: 1}}, action: NoAction}}",
            "wrong.yaml:6: tables.ternary_t[0]: priority is missing",
        ),
        (
            f"format: 1\n{GOOD}  - {{action: NoAction, priority: 3}}",
            "wrong.yaml:5: tables.lpm_t[1]: priority: 3 is given",
        ),
        ("format: 1\ntables:\n  lpm_t: [{action: NoAction, priority: x}]", "[0]: priority: 'x' is not a whole number"),
        (
            f"format: 1\n{GOOD}defaults:\n  lpm_t: {{action: NoAction, priority: 1}}",
            "wrong.yaml:6: defaults.lpm_t: a default action has neither match nor priority",
        ),
        (
            f"format: 1\n{GOOD}multicast_groups:\n  5: [{{port: 1}}, {{port: 1}}]",
            "wrong.yaml:6: multicast_groups[5]: port 1 with instance 0 is there twice",
        ),
        (
            f"format: 1\n{GOOD}clone_sessions:\n  5: {{replicas: [{{port: 1}}, {{port: 1}}]}}",
            "wrong.yaml:6: clone_sessions[5]: port 1 with instance 0 is there twice",
        ),
        (
            f"format: 1\nmulticast_groups: {{{1 << 32}: []}}",
            f"[{1 << 32}]: {1 << 32} is not between 0 and {(1 << 32) - 1}",
        ),
        ("format: 1\nmulticast_groups: {x: []}", "multicast_groups[x]: 'x' is not a number"),
    ],
)
def test_a_wrong_document_changes_nothing(started: str, run: Run, tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text(text)
    before = run("table", "dump", started)
    assert said in run("table", "load", "--replace", started, str(path), code=1)
    assert run("table", "dump", started) == before


@pytest.mark.parametrize(
    ("words", "most"),
    [
        ("group create AT 99999999999 1", (1 << 32) - 1),
        ("group delete AT 99999999999", (1 << 32) - 1),
        ("clone create AT 7 1 --length 99999999999", (1 << 31) - 1),
        ("table add AT ternary_t number=1 NoAction --priority 99999999999", (1 << 31) - 1),
        (f"meter set AT colours 0 --cir {1 << 63} --cburst 1", (1 << 63) - 1),
    ],
)
def test_a_number_that_p4runtime_has_no_bits_for_is_wrong_usage(run: Run, words: str, most: int) -> None:
    assert f" {most} " in run(*words.split(), code=2)


def test_a_port_that_p4runtime_has_no_bits_for_is_said(started: str, run: Run) -> None:
    assert "99999999999" in run("group", "create", started, "7", "99999999999", code=1)


def test_a_device_id_of_more_than_64_bits_is_wrong_usage(started: str, run: Run) -> None:
    run("table", "list", started, "--device-id", str(1 << 64), code=2)


@pytest.mark.parametrize("seconds", ["inf", "nan", "1e30", "0"])
def test_a_patience_that_no_call_has_is_refused(
    started: str, run: Run, monkeypatch: pytest.MonkeyPatch, seconds: str
) -> None:
    monkeypatch.setenv("CATCHMENT_TIMEOUT", seconds)
    assert "CATCHMENT_TIMEOUT" in run("table", "list", started, code=1)


@pytest.mark.parametrize("words", [["list", "AT", "--json"], ["dump", "AT"]])
def test_a_full_disk_is_said(started: str, words: list[str]) -> None:
    command = [sys.executable, "-m", "catchment.cli", "table", *(started if word == "AT" else word for word in words)]
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr == "catchment: cannot write the output: No space left on device\n"


@pytest.mark.parametrize("words", [["table", "list", "AT", "--json"], ["table", "list", "AT"], ["table", "dump", "AT"]])
def test_an_output_that_is_closed_is_said(started: str, words: list[str]) -> None:
    command = [sys.executable, "-m", "catchment.cli", *(started if word == "AT" else word for word in words)]
    closing = ["sh", "-c", 'exec "$@" >&-', "sh", *command]
    ended = subprocess.run(closing, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr == "catchment: cannot write the output: it is closed\n"


@pytest.fixture(scope="module")
def started() -> Iterator[str]:
    """The address of an embedded switch that runs kinds.p4."""
    config = compile_for(Target.EMBEDDED, PROGRAMS / "kinds.p4", {})
    with SwitchProcess(program_dir=cache_folder()) as process:
        with SwitchClient.connect(process.address, timeout=60.0) as client:
            client.push_pipeline(config)
        yield process.address


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_offers_names_of_the_program(
    started: str, shell: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def offered(*words: str) -> str:
        line = " ".join(words)
        environment = {
            "_CATCHMENT_COMPLETE": f"complete_{shell}",
            "_TYPER_COMPLETE_ARGS": line,
            "_TYPER_COMPLETE_FISH_ACTION": "get-args",
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(words) - 1),
        }
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "argv", ["catchment"])
        capsys.readouterr()
        with pytest.raises(SystemExit):
            cli.main()
        return capsys.readouterr().out

    assert {"lpm_t", "range_t"} <= set(offered("catchment", "table", "add", started, "").replace('"', " ").split())
    keys = offered("catchment", "table", "add", started, "exact_t", "")
    assert "dst=" in keys
    assert "forward" in keys
    assert "by_port" in offered("catchment", "counter", "read", started, "")
    assert "signed_cells" in offered("catchment", "register", "read", started, "si")
    params = offered("catchment", "table", "add", started, "exact_t", "dst=1", "forward", "")
    assert "port=" in params
    assert "dst=" not in params
