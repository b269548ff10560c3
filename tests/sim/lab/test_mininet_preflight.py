"""What is asked of the machine before a network is built: a message, where Mininet would hang."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from catchment.controlplane.networks.state import NetworkError
from catchment.sim.lab.mininet import preflight
from catchment.sim.lab.mininet.preflight import NoNamespacesError


def _tool(folder: Path, name: str, body: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def test_this_machine_will_do() -> None:
    preflight.check()


def test_a_missing_tool_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("mnexec", "ip", "ethtool"):
        _tool(tmp_path, name, "exit 0")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NetworkError, match="not installed: sysctl; run `make setup`"):
        preflight.check()


def test_an_unprivileged_container_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _tool(tmp_path, "mnexec", "echo 'unshare: Operation not permitted' >&2; exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(NoNamespacesError, match=r"unshare: Operation not permitted\).*privileged container"):
        preflight.check()


def test_another_user_is_told_to_be_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(NoNamespacesError, match="needs root"):
        preflight.check()
