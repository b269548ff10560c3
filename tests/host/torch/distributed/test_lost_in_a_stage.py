"""A rank that is killed in a stage of a sharded training: all others raise and name it, without waiting."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from crew import FOLDER, GROUPS, NATIVE, run_ranks

SIZE = 4
STAGES = ("gather.between", "gather.inside", "scatter.inside", "scatter.between", "replicas")


def check(stage: str, victim: int, folder: Path, group: str) -> None:
    """Every other rank names the victim, whether it shares a group with it or not."""
    script = str(FOLDER / "stage_victim.py")
    ended = run_ranks(
        [[script, str(rank), str(SIZE), str(folder / "store"), str(victim), stage] for rank in range(SIZE)],
        {"CATCHMENT_PROCESS_GROUP": group},
    )
    for one in ended:
        if one.rank == victim:
            assert one.code == -9, one.complaint
            continue
        assert one.code == 0, one.complaint
        (said,) = one.said
        assert said["ranks"] == [victim], said
        assert f"(rank {victim} of the world)" in said["error"] and "has ended" in said["error"], said


@pytest.mark.sampled(4)
def test_a_rank_that_is_killed_in_a_stage_is_named_by_all(tmp_path: Path, rng: random.Random) -> None:
    check(rng.choice(STAGES), rng.randrange(SIZE), tmp_path, NATIVE)


@pytest.mark.slow
@GROUPS
@pytest.mark.parametrize("stage", STAGES)
def test_a_rank_that_is_killed_in_each_stage_is_named_by_all(
    stage: str, group: str, tmp_path: Path, rng: random.Random
) -> None:
    check(stage, rng.randrange(SIZE), tmp_path, group)
