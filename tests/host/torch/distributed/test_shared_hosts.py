"""Several ranks on a host: they meet on a switch of the host, which takes the host's place in the job."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from crew import FOLDER, NATIVE, PYTHON, run_ranks
from loopback_network import LoopbackNetwork

MODULE = FOLDER / "shared_host_cases.py"
SLOTS = 32
SWITCH = f"{Path(sys.executable).parent / 'catchment-local-switch'} --slots {SLOTS}"


@pytest.mark.sampled(4)
@pytest.mark.parametrize("group", [NATIVE, pytest.param(PYTHON, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "hosts",
    [("h1", "h0", "h0", "h1", "h0"), pytest.param(("h0",) * 4 + ("h1",) * 4, marks=pytest.mark.slow)],
    ids=["mixed", "two of four"],
)
def test_ranks_of_shared_hosts(tmp_path: Path, hosts: Sequence[str], group: str) -> None:
    """The mixed ones: three ranks of a host and two of another, numbered as they came."""
    run_cases(tmp_path, hosts, group, tags=False)


@pytest.mark.sampled(4)
def test_ranks_of_shared_hosts_with_tags(tmp_path: Path) -> None:
    """A host's switch checks its ranks' tags and signs for the host; who is alone there says its host's place."""
    run_cases(tmp_path, ("h1", "h0", "h2", "h1"), NATIVE, tags=True)


def run_cases(tmp_path: Path, hosts: Sequence[str], group: str, *, tags: bool) -> None:
    with LoopbackNetwork(sorted(set(hosts)), tags=tags) as network:
        own = {
            "CATCHMENT_JOB": str(network.job_file(SLOTS)),
            "CATCHMENT_LOCAL_SWITCH": SWITCH,
            "CATCHMENT_PROCESS_GROUP": group,
            "RANKS_OF_HOSTS": ",".join(hosts),
        }
        size = len(hosts)
        commands = [
            [str(FOLDER / "member.py"), str(MODULE), str(rank), str(size), str(tmp_path / "store"), "120"]
            for rank in range(size)
        ]
        ended = run_ranks(commands, own, each=[{"CATCHMENT_HOST": host} for host in hosts])
        assert network.refused() == 0
    for rank in ended:
        assert rank.code == 0, rank.complaint
        assert rank.said and not [said for said in rank.said if "error" in said], rank.said
