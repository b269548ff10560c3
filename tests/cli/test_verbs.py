"""The `catchment` command on a switch in memory: what it prints, what it leaves, how it fails."""

from __future__ import annotations

import _thread
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from command_lab import Run, as_json, held_by_jobs
from fake_switch import FakeSwitch, RunningFake

from catchment.checkout import ROOT
from catchment.controlplane import shell
from catchment.controlplane.client import SwitchClient
from catchment.wire.generated.constants import Mode


def test_a_job_is_renewed_for_its_next_run(run: Run, client: SwitchClient) -> None:
    first = as_json(run, "job", "create", "train", "--workers", "w0,w1", "--root", "opt")
    entries = client.read("jobs")
    second = as_json(run, "job", "renew", "train")
    assert second["epoch"] == first["epoch"] + 1
    gens = [{member[s]["gen"] for member in job["members"].values() for s in ("gradients", "parameters")}
            for job in (first, second)]  # fmt: skip
    assert len(gens[0] | gens[1]) == 4
    assert as_json(run, "job", "show", "train") == second
    renewed = client.read("jobs")
    assert len(renewed) == len(entries) and all(entry not in entries for entry in renewed)
    assert f"epoch {second['epoch'] + 1};" in run("job", "renew", "train")
    assert "no job" in run("job", "renew", "nothing", code=1)


def test_a_job_from_creation_to_removal(run: Run, client: SwitchClient) -> None:
    created = as_json(run, "job", "create", "train", "--workers", "w0,w1", "--root", "opt", "--slots", "16")
    assert created["members"]["w1"]["role"] == "worker"
    assert as_json(run, "job", "show", "train") == created
    assert json.loads(run("job", "show", "train", "--host", "opt")) == created["members"]["opt"]
    assert [job["name"] for job in as_json(run, "job", "list")] == ["train"]
    assert "train" in run("job", "list")
    assert "10.0.0.2:51836" in run("job", "show", "train")
    assert len(client.read("jobs")) == 6
    second = as_json(run, "job", "create", "other", "--kind", "allreduce", "--workers", "w0,w1")
    gens = {job["members"]["w0"][s]["gen"] for job in (created, second) for s in ("gradients", "parameters", "sums")
            if s in job["members"]["w0"]}  # fmt: skip
    assert len(gens) == 3
    assert "job train is removed" in run("job", "remove", "train")
    assert len(client.read("jobs")) == 2
    run("job", "remove", "other")
    assert client.read("jobs") + client.read("receivers") == []
    assert as_json(run, "job", "list") == []
    third = as_json(run, "job", "create", "train", "--workers", "w0,w1", "--root", "opt")
    assert third["members"]["w0"]["gradients"]["gen"] not in gens, "a generation is not used again"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["job", "create", "x", "--workers", "w0,w9", "--root", "opt"], "no host 'w9' in topology lab; it has: w0, w1"),
        (["job", "create", "x", "--workers", "w0"], "a luwu job needs --root HOST"),
        (
            ["job", "create", "x", "--kind", "allreduce", "--workers", "w0", "--root", "opt"],
            "--root is for jobs with an",
        ),
        (["job", "create", "x", "--workers", "w0", "--root", "opt", "--slots", "9"], "power of two"),
        (["job", "show", "absent"], "no job 'absent' on topology lab; there are: none; make one with"),
        (["table", "list", "s9"], "no switch 's9' in topology lab; it has: s1"),
        (["table", "list", "s1", "nothing"], "no table 'nothing'"),
        (["table", "add", "s1", "l2", "dst=02:00:00:00:00:09"], "no action given"),
        (["table", "add", "s1", "l2", "dst=1", "forward", "port=1", "oops"], "'oops' is not PARAM=VALUE"),
        (["table", "add", "s1", "l2", "dst=1", "forward", "port=512"], "512 does not fit in 9 bits"),
        (["table", "delete", "s1", "l2", "dst=1"], "delete l2[dst=1]: NOT_FOUND"),
        (["table", "delete", "s1", "l2", "forward"], "is not KEY=VALUE"),
        (["stats", "s9"], "no switch 's9'"),
        (["diagnose", "absent"], "no job 'absent'"),
        (["p4", "compile", "absent.p4"], "no P4 program at absent.p4"),
        (["net", "up", "absent.yaml"], "cannot read topology absent.yaml"),
        (["net", "exec", "w9", "true"], "no network is up; start one"),
    ],
)
def test_mistakes_are_one_message(run: Run, words: list[str], complaint: str) -> None:
    assert complaint in run(*words, code=1)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """A call after which verbs wait a second: for switches that do not answer."""
    return lambda: monkeypatch.setenv("CATCHMENT_TIMEOUT", "1")


def test_nobody_at_an_address_is_one_message(run: Run, impatient: Callable[[], None], tmp_path: Path) -> None:
    impatient()
    for name in ("a", "b"):
        (tmp_path / name).touch()
    said = run("switch", "load", "127.0.0.1:1", str(tmp_path / "a"), str(tmp_path / "b"), code=1)
    assert "switch at 127.0.0.1:1: no P4Runtime server answers" in said


def test_a_name_is_taken_once(run: Run, client: SwitchClient) -> None:
    run("job", "create", "x", "--workers", "w0", "--root", "opt")
    before = client.read()
    assert "job x exists; remove it with" in run("job", "create", "x", "--workers", "w1", "--root", "opt", code=1)
    assert client.read() == before


def test_a_job_that_the_switch_refuses_is_not_stored(run: Run, client: SwitchClient) -> None:
    client.set_group(2, [1])
    assert "already has multicast group 2" in run("job", "create", "x", "--workers", "w0", "--root", "opt", code=1)
    assert as_json(run, "job", "list") == []


def test_a_job_can_be_forgotten_when_its_switch_is_gone(
    run: Run, fake: RunningFake, impatient: Callable[[], None]
) -> None:
    run("job", "create", "x", "--workers", "w0", "--root", "opt")
    fake.stop()
    impatient()
    assert "no P4Runtime server answers" in run("job", "remove", "x", code=1)
    run("job", "remove", "x", "--force")
    assert as_json(run, "job", "list") == []


def test_table_entries_by_hand(run: Run, fake: RunningFake) -> None:
    run("table", "add", "s1", "l2", "dst=02:00:00:00:00:09", "forward", "port=3")
    run("table", "add", fake.address, "everything", "flags=1&&&3", "port=1..9", "forward", "port=4", "--priority", "7")
    run("table", "add", "s1", "l2", "--default", "flood", "group=1")
    assert as_json(run, "table", "list", "s1", "l2") == [
        {
            "table": "l2",
            "match": {"dst": "02:00:00:00:00:09"},
            "action": "forward",
            "params": {"port": 3},
        }
    ]
    shown = run("table", "list", "s1")
    assert "flags=1&&&0x3 port=1..9" in shown
    run("table", "delete", "s1", "l2", "dst=02:00:00:00:00:09")
    assert as_json(run, "table", "list", "s1", "l2") == []


def test_stats_name_reasons_and_members(run: Run, fake: RunningFake) -> None:
    run("job", "create", "x", "--workers", "w0", "--root", "opt")
    fake.switch.counters = {8: 5, 31: 1}
    for key, entity in fake.switch.entities.items():
        if entity.WhichOneof("entity") == "table_entry":
            fake.switch.direct[key] = 10
    (one,) = as_json(run, "stats")
    assert one["drops"] == {"UNKNOWN_JOB": 5, "reason 31": 1}
    assert {(t["job"], t["stream"], t["member"], t["packets"]) for t in one["jobs"]} == {
        ("x", stream, member, 10) for stream in ("gradients", "parameters") for member in ("w0", "opt")
    }
    assert "UNKNOWN_JOB" in run("stats", "s1")


def test_ctrl_c_ends_the_exporter_in_order_as_soon_as_it_says_so(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def press(line: str) -> None:
        assert line.endswith("Ctrl-C ends it")
        raise KeyboardInterrupt

    monkeypatch.setattr(typer, "echo", press)
    run("stats", "--prometheus", "0", code=0)


def test_ctrl_c_just_before_the_exporter_waits_ends_it(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter is told of it, and nothing interrupts what it calls next."""
    told, ended, in_time = threading.Event(), threading.Event(), []

    def press() -> None:
        told.wait(60)
        time.sleep(0.1)  # it waits by then
        _thread.interrupt_main()
        in_time.append(ended.wait(20))
        if not in_time[0]:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    presses = threading.Thread(target=press)
    presses.start()
    monkeypatch.setattr(typer, "echo", lambda _: told.set())
    run("stats", "--prometheus", "0", code=0)
    ended.set()
    presses.join()
    assert in_time == [True]


def test_diagnose_names_who_is_silent(run: Run) -> None:
    run("job", "create", "x", "--workers", "w0,w1", "--root", "opt")
    said = run("diagnose", "x", "--seconds", "0.05", code=3)
    for name in ("w0", "w1", "opt"):
        assert f"{name} (port " in said and "of switch s1) has never sent anything" in said
    found = json.loads(run("diagnose", "x", "--seconds", "0.05", "--json", code=3))
    assert {one["member"] for one in found["missing"]} == {"w0", "w1", "opt"}
    assert found["waiting"] == []


def test_a_switch_that_does_not_answer_is_named_by_diagnose(
    run: Run, fake: RunningFake, impatient: Callable[[], None]
) -> None:
    run("job", "create", "x", "--workers", "w0", "--root", "opt")
    fake.stop()
    impatient()
    assert "switch s1 does not answer" in run("diagnose", "x", "--seconds", "0.05", code=3)


def test_without_a_network_the_message_says_what_to_do(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CATCHMENT_TOPOLOGY")
    assert "no network is up; start one with `catchment net up" in run("job", "list", code=1)


def test_an_open_address_needs_a_network(run: Run, topology: Path) -> None:
    topology.write_text(topology.read_text().replace(", grpc: 127", ", device_id: 1} #"))
    assert "no fixed grpc address" in run("table", "list", "s1", code=1)


def test_a_corrupt_job_file_is_not_overwritten(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "state" / "lab.jobs.sqlite"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{" * 5000)
    assert "the job file" in run("job", "list", code=1)
    assert path.read_text() == "{" * 5000


def test_a_bad_timeout_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CATCHMENT_TIMEOUT", "soon")
    assert "CATCHMENT_TIMEOUT is 'soon'" in run("table", "list", "s1", code=1)


def test_bad_usage_is_explained(run: Run) -> None:
    assert "--workers" in run("job", "create", "x", code=2)


def test_the_switch_says_it_has_no_program(topology: Path, run: Run) -> None:
    with RunningFake(FakeSwitch()) as empty:
        assert "has no program yet" in run("table", "list", empty.address, code=1)


def test_the_shell_runs_p4runtime_shell_on_a_named_switch(topology: Path, client: SwitchClient) -> None:
    """And its error iterator, which never ends on a batch whose first update was accepted, ends."""
    batch = topology.with_name("batch.txt")
    entry = "entity {{ table_entry {{ table_id: {table} match {{ field_id: 1 exact {{ value: '{key}' }} }}" \
        " action {{ action {{ action_id: {action} params {{ param_id: 1 value: '\\001' }} }} }} }} }}"  # fmt: skip
    table = client.p4info.find("table", "l2")
    action = client.p4info.find_action(table, "forward")
    ids = {"table": table.preamble.id, "action": action.preamble.id}
    updates = "".join(f"updates {{ type: INSERT {entry.format(key=key, **ids)} }}\n" for key in "aba")
    batch.write_text(updates)
    commands = f"te = table_entry['In.l2.l2'](action='forward')\nWrite('{batch}')\nprint('still', 'here')\nexit\n"
    result = _piped_into_the_shell(commands)
    assert result.returncode == 1
    assert "At index 2: ALREADY_EXISTS" in result.stdout
    assert "still here" in result.stdout
    assert sorted(str(e.match["dst"]) for e in client.read("l2")) == ["00:00:00:00:00:61", "00:00:00:00:00:62"]


@pytest.mark.usefixtures("topology", "client")
@pytest.mark.parametrize(("command", "code"), [("print('all', 'well')", 0), ("x = = 1", 1)], ids=["well", "no Python"])
def test_the_shell_ends_with_1_where_a_command_failed_that_was_piped_in(command: str, code: int) -> None:
    assert _piped_into_the_shell(f"{command}\n\nexit\n").returncode == code


def _piped_into_the_shell(commands: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "catchment.cli", "shell", "s1"],
        input=commands, text=True, capture_output=True, timeout=60, check=False, cwd=ROOT,
    )  # fmt: skip


def test_the_shell_ends_when_nobody_reads_on(topology: Path, client: SwitchClient) -> None:
    command = [sys.executable, "-m", "catchment.cli", "shell", "s1", "-t", str(topology)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=ROOT
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(b"for i in range(9999): print('line', i)\n\nexit\n")
            process.stdin.close()
            assert b"P4Runtime" in process.stdout.readline()
            process.stdout.close()
            assert process.wait(60) == 128 + signal.SIGPIPE
        finally:
            process.kill()


def test_doctor_says_what_to_do(
    run: Run, fake: RunningFake, client: SwitchClient, impatient: Callable[[], None]
) -> None:
    run("job", "create", "x", "--workers", "w0,w1", "--root", "opt", "--slots", "8")
    (gradients,) = {e.match["gen"] for e in client.read("jobs") if e.params.get("mode") == Mode.REDUCE}
    (base,) = {e.params["base"] for e in client.read("jobs") if e.match["gen"] == gradients and "base" in e.params}
    client.write_register("slot_tag.tag", int(base) + 5 % 8, int(gradients) << 32 | 5)
    client.write_register("slot_workers.bitmap", int(base) + 5 % 8, 0b10)
    entry = next(e for e in client.read("receivers"))
    client.delete(entry)
    found = json.loads(run("doctor", "x", "--seconds", "0.05", "--json", code=3))["x"]
    said = " ".join(f"{one['what']} {one['todo']}" for one in found)
    assert "w0, on port 1 of s1, sends nothing: counter job_packets" in said
    assert "it has never sent anything" in said
    assert f"gradients: vector 5 waits at s1 for w0 (registers slot_tag and slot_workers, slot {int(base) + 5})" in said
    assert "switch s1 lacks 1 of 12 table entries" in said
    assert "run a controller" in said
    fake.stop()
    impatient()
    assert "switch s1 does not answer" in run("doctor", "--seconds", "0.05", code=3)


def test_faults_by_name(run: Run, client: SwitchClient) -> None:
    assert "s1 loses 25.000% on port 1" in run(
        "fault", "set", "s1", "--loss", "0.25", "--port", "w0", "--type", "pa", "--direction", "ingress"
    )
    (entry,) = client.read("ingress_faults")
    assert (entry.match["port"], entry.params["threshold"]) == (1, 1 << 30)
    assert client.read("egress_faults") == []
    assert as_json(run, "fault", "list") == [
        {
            "switch": "s1",
            "by": "program",
            "port": 1,
            "direction": "ingress",
            "type": "PA",
            "faults": "loss=0.25",
            "loss": 0.25,
        }
    ]
    assert "no port 'w9'; it has: 1 (w0)" in run("fault", "set", "s1", "--loss", "1", "--port", "w9", code=1)
    assert "no packet type 'XX'" in run("fault", "set", "s1", "--loss", "1", "--type", "XX", code=1)
    run("fault", "set", "s1", "--loss", "2", code=2)
    run("fault", "set", "s1", "--loss", "1")
    run("fault", "clear")
    assert client.read("ingress_faults") + client.read("egress_faults") == []


def test_topology_files_are_checked_and_drawn(run: Run, tmp_path: Path, topology: Path) -> None:
    assert "no P4 program at" in run("topology", "check", str(topology), code=1)
    (tmp_path / "luwu.p4").touch()
    assert "w0, w1, opt" in run("topology", "check", str(topology))
    assert as_json(run, "topology", "check", str(topology))["islands"] == 1
    run("topology", "draw", str(topology), "-o", str(tmp_path / "lab.svg"))
    assert (tmp_path / "lab.svg").read_text() == run("topology", "draw", str(topology))
    topology.write_text(topology.read_text().replace("link: s1:2", "link: s2:2"))
    assert "lab.yaml:6: hosts.w1.link: no switch 's2'" in run("topology", "draw", str(topology), code=1)


def test_a_missing_shell_says_how_to_install_it(
    topology: Path, client: SwitchClient, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shell, "SHELL", topology.with_name("nothing"))
    assert "run `make setup`" in run("shell", "s1", code=1)


def test_a_group_of_jobs_is_one_thing(run: Run, fake: RunningFake) -> None:
    words = ("job", "create", "pair", "--kind", "allreduce", "--workers", "w0,w1,opt", "--grid", "row=3,cell=1")
    made = as_json(run, *words)
    assert list(made["parts"]) == ["", "row.0", "across-row.0", "across-row.1", "across-row.2", "cell.0", "cell.1",
                                   "cell.2", "across-cell.0"]  # fmt: skip
    assert made["members"]["w1"]["parts"]["across-cell.0"]["wid"] == 1
    (listed,) = as_json(run, "job", "list")
    assert listed["name"] == "pair"
    assert "of 9 jobs" in run("job", "list")
    shown = run("job", "show", "pair")
    assert "across-cell.0" in shown and "jobs of group pair" in shown
    assert "all, row.0, across-row.0, cell.0, across-cell.0" in shown, "what each member is in, on one line"
    before = {label: part["generations"]["sums"] for label, part in made["parts"].items()}
    renewed = as_json(run, "job", "renew", "pair")
    assert renewed["epoch"] == 2
    assert not {part["generations"]["sums"] for part in renewed["parts"].values()} & set(before.values())
    found = json.loads(run("doctor", "pair", "--seconds", "0.05", "--json", code=3))
    assert list(found) == ["pair"], "one heading for the group"
    silent = [one["subject"] for one in found["pair"] if one["silence"]]
    assert sorted(silent) == ["opt", "w0", "w1"], "each is named once, not once a job"
    assert run("doctor", "pair", "--seconds", "0.05", code=3).startswith("job pair: something is wrong\n")
    run("job", "remove", "pair")
    assert as_json(run, "job", "list") == []
    assert held_by_jobs(fake) == ([], {})


def test_a_group_without_a_job_of_all_shows_each_member_in_each_job(run: Run, fake: RunningFake) -> None:
    run("job", "create", "two", "--workers", "w0", "--roots", "w1,opt")
    assert "(luwu over s1, 64 lanes" in run("job", "show", "two")
    shown = [line.split("│") for line in run("job", "show", "two").splitlines() if "│" in line]
    members = {(row[1].strip(), row[6].strip()): row[2].strip() for row in shown[:4]}
    assert members == {("w0", "w1"): "worker", ("w0", "opt"): "worker", ("w1", "w1"): "root", ("opt", "opt"): "root"}
    assert all(":" in row[4] and ":" in row[5] for row in shown[:4]), "addresses of its endpoint and of its switch"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--grid", "row"], "--grid row: give NAME=SIZE"),
        (["--grid", "row=two"], "--grid row=two: give NAME=SIZE"),
        (["--grid", "row=2"], "blocks of 2 do not fill 3 workers evenly"),
        (["--rails", "a,b"], "topology lab has no rails"),
        (["--roots", "w0"], "--root is for jobs with an optimizer node"),
        (["--stream", "gossip"], "has no optional stream 'gossip'; it may have: control"),
        (["--kind", "gossip"], "'gossip' is no kind of job; there are: allreduce, luwu, slots"),
    ],
)
def test_groups_that_cannot_be_are_explained(run: Run, words: list[str], complaint: str) -> None:
    kind = [] if "--kind" in words else ["--kind", "allreduce"]
    assert complaint in run("job", "create", "x", *kind, "--workers", "w0,w1,opt", *words, code=1)
