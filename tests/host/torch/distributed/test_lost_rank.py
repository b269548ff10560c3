"""A rank that is killed: all others raise, name it, and need not wait for a timeout; and its switch ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from crew import FOLDER, NATIVE, PYTHON, ROOT, run_ranks


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("victim", "group"),
    [
        (0, NATIVE),
        (2, NATIVE),
        pytest.param(0, PYTHON, marks=pytest.mark.slow),
        pytest.param(2, PYTHON, marks=pytest.mark.slow),
    ],
)
def test_a_killed_rank_is_named_by_all_others(tmp_path: Path, victim: int, group: str) -> None:
    size = 3
    script = str(FOLDER / "victim.py")
    ended = run_ranks(
        [[script, str(rank), str(size), str(tmp_path / "store"), str(victim)] for rank in range(size)],
        {"CATCHMENT_PROCESS_GROUP": group},
    )
    for one in ended:
        if one.rank == victim:
            assert one.code == -9
            continue
        assert one.code == 0, one.complaint
        (said,) = one.said
        assert len(said["errors"]) == 4
        assert said["total"] == [size - 1] * 3
        for report in said["errors"]:
            # Somebody said so: nobody waited for the timeout.
            assert f"the process of rank {victim} has ended" in report["error"], report


@pytest.mark.sampled(4)
def test_a_rank_that_ends_before_the_group_is_made_is_named(tmp_path: Path) -> None:
    program = (
        "import sys, datetime, torch.distributed as d\n"
        f"d.init_process_group('catchment', init_method='file://{tmp_path}/store', rank=0, world_size=2,"
        " timeout=datetime.timedelta(seconds=3))"
    )
    (ended,) = run_ranks([["-c", program]])
    assert ended.code == 1
    assert "rank 1 has not come" in ended.complaint


def test_ranks_with_settings_that_cannot_be_used_say_so(tmp_path: Path) -> None:
    program = (
        "import sys, datetime, torch.distributed as d\n"
        f"d.init_process_group('catchment', init_method='file://{tmp_path}/store', rank=int(sys.argv[1]),"
        " world_size=2, timeout=datetime.timedelta(seconds=60))"
    )
    ended = run_ranks([["-c", program, str(rank)] for rank in range(2)], {"CATCHMENT_JOB": str(tmp_path / "nothing")})
    assert [one.code for one in ended] == [1, 1]
    assert all("describes no job" in one.complaint for one in ended)


def test_the_switch_ends_with_its_ranks() -> None:
    service = subprocess.Popen(
        [sys.executable, "-m", "catchment.sim.lab.local_switch", "--ranks", "2", "--patience", "0.1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=dict(os.environ),
    )
    output, complaint = service.communicate(timeout=240)
    assert service.returncode == 0 and '"socket"' in output, complaint


@pytest.mark.sampled(4)
@pytest.mark.parametrize("group", [NATIVE, pytest.param(PYTHON, marks=pytest.mark.slow)])
@pytest.mark.parametrize("when", ["before", "waiting", "meeting"])
def test_sends_and_receives_of_a_lost_rank_name_it(tmp_path: Path, when: str, group: str) -> None:
    """Gloo itself waits for several times the group's timeout."""
    ended = run_ranks(
        [[str(FOLDER / "lost_peer.py"), str(rank), str(tmp_path / "store"), when] for rank in range(2)],
        {"CATCHMENT_PROCESS_GROUP": group},
        patience=120,
    )
    assert ended[1].code == -9 and ended[0].code == 0, ended[0].complaint
    errors = ended[0].said[0]["said"]
    assert len(errors) == (4 if when == "meeting" else 5)
    for error in errors:
        assert (error["kind"], error["peers"]) == ("missing", [1]), error
        assert "the process of rank 1 has ended" in error["text"]
