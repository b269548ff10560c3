"""The `job` verbs where a controller runs: the same words, another way."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_lab import Run
from fake_switch import FakeSwitch, RunningFake
from running_controller import PATIENT, RunningController, until, use_fake_programs

from catchment.cli import job as job_verbs
from catchment.controlplane.client import SwitchClient
from catchment.controlplane.controller.operator import OperatorClient
from catchment.controlplane.topology import Topology
from catchment.host.membership import Membership


@pytest.fixture
def fake() -> Iterator[RunningFake]:
    """A switch without a program: the controller loads it."""
    with RunningFake(FakeSwitch()) as running:
        yield running


@pytest.fixture
def controller(
    topology: Path,
    fake: RunningFake,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[RunningController]:
    use_fake_programs(monkeypatch, tmp_path)
    with RunningController(Topology.load(topology), {"s1": fake.address}, tmp_path / "state", PATIENT) as running:
        with running.operator() as operator:
            until(lambda: operator.switches()[0].state == "up", "the switch is up")
        yield running


def test_a_job_through_the_controller(
    run: Run, controller: RunningController, fake: RunningFake, tmp_path: Path
) -> None:
    secret = tmp_path / "token"
    words = ("job", "create", "train", "--workers", "w0,w1", "--root", "opt", "--slots", "16")
    created = json.loads(run(*words, "--token-file", str(secret), "--json"))
    assert "token" not in created
    assert secret.stat().st_mode & 0o777 == 0o600
    assert created["presence"] == {"w0": "absent", "w1": "absent", "opt": "absent"}
    assert json.loads(run("job", "show", "train", "--host", "w1", "--json")) == created["members"]["w1"]
    with SwitchClient.connect(fake.address, read_only=True, timeout=60.0) as client:
        assert len(client.read("jobs")) == 6
    member: Membership = controller.join("train", "w0", secret.read_text())
    assert json.loads(run("job", "show", "train", "--json"))["presence"]["w0"] == "joined"
    found = json.loads(run("doctor", "train", "--seconds", "0.05", "--json", code=3))["train"]
    assert [one["subject"] for one in found if "says the controller" in one["what"]] == ["w1", "opt"]
    member.leave()
    assert "train" in run("job", "list")
    assert "exists" in run(*words, code=1)
    assert "renews job train by itself" in run("job", "renew", "train", code=1)
    assert "job train is removed" in run("job", "remove", "train")
    assert json.loads(run("job", "list", "--json")) == []
    assert "token: " in run("job", "create", "other", "--workers", "w0", "--root", "opt")
    assert "needs --root" in run("job", "create", "x", "--workers", "w0", code=1)


def test_ctrl_c_says_that_the_controller_goes_on(
    run: Run,
    controller: RunningController,
    topology: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def cut_short(of: str) -> None:
        real = getattr(OperatorClient, of)

        def ending(self: OperatorClient, *arguments: Any) -> None:
            real(self, *arguments)
            raise KeyboardInterrupt

        monkeypatch.setattr(OperatorClient, of, ending)

    cut_short("create")
    with pytest.raises(KeyboardInterrupt):
        job_verbs.create("train", workers="w0,w1", root="opt", topology=topology)
    said = capsys.readouterr().err
    assert "makes job train all the same" in said and "`catchment job token train`" in said
    assert run("job", "token", "train").startswith("token: ")
    cut_short("remove")
    with pytest.raises(KeyboardInterrupt):
        job_verbs.remove("train", topology=topology)
    assert "removes job train all the same" in capsys.readouterr().err
    assert json.loads(run("job", "list", "--json")) == []


def test_a_job_made_without_a_controller_is_taken_over(
    run: Run,
    controller: RunningController,
    fake: RunningFake,
) -> None:
    controller.stop()
    run("job", "create", "early", "--workers", "w0", "--root", "opt")
    with SwitchClient.connect(fake.address, read_only=True, timeout=60.0) as client:
        before = client.read()
    controller.start()
    with controller.operator() as operator:
        until(lambda: operator.switches()[0].state == "up", "the switch is up")
    assert [job["name"] for job in json.loads(run("job", "list", "--json"))] == ["early"]
    with SwitchClient.connect(fake.address, read_only=True, timeout=60.0) as client:
        assert client.read() == before


def test_the_controller_is_shown_and_alone(run: Run, controller: RunningController) -> None:
    shown = json.loads(run("controller", "show", "--json"))
    assert [(s["switch"], s["state"], s["restores"]) for s in shown["switches"]] == [("s1", "up", 1)]
    assert isinstance(shown["switches"][0]["restore_seconds"], float), "a number, not text"
    assert shown["switches"][0]["repairs"] == 0
    assert "s1" in run("controller", "show")
    assert "a controller of lab runs already" in run("controller", "run", code=1)
    controller.stop()
    assert "no controller of lab runs" in run("controller", "show", code=1)


def test_a_token_and_certificates_are_renewed(run: Run, controller: RunningController, tmp_path: Path) -> None:
    run("job", "create", "train", "-w", "w0,w1", "--root", "opt")
    file = tmp_path / "token"
    run("job", "token", "train", "--token-file", str(file))
    assert file.stat().st_mode & 0o777 == 0o600 and len(file.read_text()) > 20
    assert run("job", "token", "train").startswith("token: ")
    assert "nobody may join" in run("job", "token", "train", "--revoke")
    folder = str(controller.certificates)
    assert "host-w0.crt" in run("controller", "certificates", folder, "--renew", "w0", "--revoke")
    assert len((controller.certificates / "revoked").read_text().split()) == 1
    assert "cannot renew" in run("controller", "certificates", folder, "--renew", "nobody", code=1)


def test_a_token_is_asked_for_once_its_file_is_there(run: Run, controller: RunningController, tmp_path: Path) -> None:
    words = ("job", "create", "train", "-w", "w0,w1", "--root", "opt")
    for path in (tmp_path / "nowhere" / "token", tmp_path, Path()):
        assert f"cannot write {path}" in run(*words, "--token-file", str(path), code=1)
    assert run("job", "list", "--json").split() == ["[]"]

    file = tmp_path / "token"
    run(*words, "--token-file", str(file))
    given = file.read_text()
    assert "cannot write" in run("job", "token", "train", "--token-file", str(tmp_path / "nowhere" / "token"), code=1)
    assert "no job 'other'" in run("job", "token", "other", "--token-file", str(file), code=1)
    assert file.read_text() == given
    assert [one.name for one in tmp_path.iterdir() if "token" in one.name] == ["token"]
    controller.join("train", "w0", given).leave()  # nobody has taken it back


def test_a_token_takes_the_place_of_a_file_alone(run: Run, controller: RunningController, tmp_path: Path) -> None:
    file, link, dangling, pipe = (tmp_path / name for name in ("file", "link", "dangling", "pipe"))
    file.write_text("precious")
    link.symlink_to(file)
    dangling.symlink_to(tmp_path / "nowhere")
    os.mkfifo(pipe)
    words = ("job", "create", "train", "-w", "w0,w1", "--root", "opt", "--token-file")
    for path, what in (
        (link, f"symbolic link to {file}"),
        (dangling, f"symbolic link to {tmp_path}/nowhere"),
        (pipe, "pipe, a socket or a device"),
        (tmp_path, "folder"),
    ):
        assert f"cannot write {path}: it is a {what}; give the path of " in run(*words, str(path), code=1)
    assert run("job", "list", "--json").split() == ["[]"], "nobody was asked"
    assert file.read_text() == "precious" and link.is_symlink() and dangling.is_symlink() and pipe.is_fifo()
    run(*words, str(file))
    given = file.read_text()
    assert "it is a pipe" in run("job", "token", "train", "--token-file", str(pipe), code=1)
    controller.join("train", "w0", given).leave()  # it counts on


def test_certificates_for_a_topology(run: Run, topology: Path, tmp_path: Path) -> None:
    folder = tmp_path / "authority"
    made = run("controller", "certificates", str(folder)).split()
    assert {Path(name).name for name in made} == {
        "catchment-controller.crt", "operator.crt", "host-w0.crt", "host-w1.crt", "host-opt.crt",
    }  # fmt: skip
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in folder.glob("*.key"))
    assert run("controller", "certificates", str(folder)) == "", "what is there is kept"
    assert "cannot read" in run("controller", "run", "--certificates", str(tmp_path / "nothing"), code=1)


def test_nothing_is_revoked_without_what_replaces_it(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "certificates"
    run("controller", "certificates", str(folder), "--topology", str(tmp_path / "lab.yaml"))
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    said = run("controller", "certificates", str(folder), "--revoke", code=1)
    assert "--revoke is of a certificate that --renew NAME replaces" in said
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    made = run("controller", "certificates", str(folder), "--renew", "w0", "--revoke")
    assert made == f"{folder}/host-w0.crt\n"
    assert (folder / "revoked").is_file()
