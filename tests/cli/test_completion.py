"""What the shell offers at a tab beside names of programs: jobs, hosts and networks."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from command_lab import Run

from catchment import cli
from catchment.cli import target
from catchment.controlplane.networks.state import NetworkState

Offer = Callable[..., list[str]]


@pytest.fixture
def offered(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Offer:
    """The words that bash is offered after others; the last may be begun."""

    def offered(*words: str) -> list[str]:
        monkeypatch.setenv("_CATCHMENT_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", " ".join(("catchment", *words)))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        monkeypatch.setattr(sys, "argv", ["catchment"])
        capsys.readouterr()
        with pytest.raises(SystemExit):
            cli.main()
        monkeypatch.delenv("_CATCHMENT_COMPLETE")
        return capsys.readouterr().out.split()

    return offered


def test_jobs_and_hosts(run: Run, offered: Offer) -> None:
    for name in ("train", "tune"):
        run("job", "create", name, "--workers", "w0,w1", "--root", "opt", "--slots", "8")
    for verb in (["job", "show"], ["job", "renew"], ["job", "remove"], ["doctor"], ["diagnose"], ["traffic", "worker"]):
        assert offered(*verb, "t") == ["train", "tune"]
        assert offered(*verb, "tr") == ["train"]
    assert offered("job", "show", "train", "--host", "w") == ["w0", "w1"]
    assert offered("job", "create", "") == []


def test_networks(offered: Offer, monkeypatch: pytest.MonkeyPatch) -> None:
    up = [NetworkState(name, 1) for name in ("left", "right")]
    monkeypatch.setattr(target, "networks_up", lambda: up)
    assert offered("net", "down", "") == ["left", "right"]
    assert offered("net", "down", "r") == ["right"]


def test_hosts_of_the_network_that_is_up(topology: Path, offered: Offer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target, "networks_up", lambda: [NetworkState("lab", 1, str(topology))])
    assert offered("net", "exec", "") == ["w0", "w1", "opt"]
    assert offered("net", "exec", "o") == ["opt"]


def test_nothing_is_offered_where_no_network_is(
    offered: Offer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CATCHMENT_RUN_DIR", str(tmp_path))
    monkeypatch.delenv("CATCHMENT_TOPOLOGY", raising=False)
    assert offered("job", "show", "") == []
    assert offered("net", "down", "") == []
