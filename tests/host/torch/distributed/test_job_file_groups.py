"""Groups of some of the ranks of a job file: through the parts of its grid, and else by gloo, which is said."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

import pytest
from crew import FOLDER, NATIVE, PYTHON, run_cases

from catchment.controlplane.jobs import Allocator, JobRequest, deploy
from catchment.controlplane.jobs.division import grid
from catchment.host.collectives import CollectiveError, Communicator
from catchment.host.torch.distributed.job_file import JobFile, grid_with
from catchment.sim.lab.shm_lab import ShmLab

NAMES = ("w0", "w1", "w2", "w3")
CASES = (
    "case_a_mesh_goes_through_the_switch",
    "case_a_job_file_has_each_part_once",
    "case_a_set_without_a_part_is_told_what_to_add",
)


def job_file(lab: ShmLab, folder: Path) -> Path:
    """A job with a grid of rows of two, on the lab's shared-memory ports."""
    group = JobRequest("job", "allreduce", NAMES, slots=16, grid=(("row", 2),)).plan(
        lab.topology, Allocator(lab.topology)
    )
    deploy(group, lab.topology, lab.fabric.clients)
    document = group.describe_all()
    for name, member in document["members"].items():
        for one in (member, *member["parts"].values()):
            one["port"] = f"shm:{lab.path(name)}"
    file = folder / "job.json"
    file.write_text(json.dumps(document))
    return file


@pytest.mark.sampled(4)
@pytest.mark.parametrize("group", [NATIVE, pytest.param(PYTHON, marks=pytest.mark.slow)])
def test_groups_of_a_job_file(tmp_path: Path, group: str) -> None:
    with ShmLab(NAMES) as lab:
        settings = {"CATCHMENT_JOB": str(job_file(lab, tmp_path))}
        failures = run_cases(
            FOLDER / "mesh_cases.py", 4, tmp_path / "store", timeout=120, group=group, cases=CASES, settings=settings
        )
    assert set(failures) == {*CASES, "end"} and not any(failures.values()), failures


def chains(size: int) -> list[tuple[tuple[str, int], ...]]:
    """Every grid of up to two levels."""
    divisors = [n for n in range(1, size + 1) if size % n == 0]
    ones = [(("a", n),) for n in divisors]
    return ones + [(("a", n), ("b", m)) for n in divisors for m in divisors if n % m == 0]


@pytest.mark.parametrize("size", [4, 6, 8])
def test_the_grid_to_add_has_the_set_if_any_has(size: int) -> None:
    workers = [str(index) for index in range(size)]
    parts = {frozenset(part) for chain in chains(size) for part in grid(workers, chain, "job").values()}
    for count in range(2, size + 1):
        for chosen in combinations(range(size), count):
            sizes = grid_with(chosen, size)
            wanted = frozenset(map(str, chosen))
            assert (sizes is not None) == (wanted in parts), chosen
            if sizes is not None:
                found = grid(workers, tuple(zip("ab", sizes, strict=False)), "job")
                assert wanted in map(frozenset, found.values()), (chosen, sizes)


def member(**changes: object) -> dict[str, object]:
    stream = {"gen": 7, "workers": 1, "slots": 8, "lanes": 64}
    told = {"role": "peer", "wid": 0, "local": ["127.0.0.1", 0], "switch": ["127.0.0.1", 9], "sums": stream, **changes}
    return {key: value for key, value in told.items() if value != ABSENT}


ABSENT = "absent"
DAMAGED: list[dict[str, object]] = [
    {key: value} for key in ("local", "sums", "wid") for value in (None, 5, "", "\ud800", {}, [], [None], ABSENT)
    if not (key == "wid" and value == 5)
]  # fmt: skip


@pytest.mark.parametrize("text", ["[" * 100_000, "5", '{"workers": ["w0"], "members": {"w0": null}}'])
def test_a_file_that_is_none_of_a_job_is_named(tmp_path: Path, text: str) -> None:
    file = tmp_path / "job.json"
    file.write_text(text)
    with pytest.raises(CollectiveError, match=r"job\.json describes no job"):
        JobFile(file, 1)


@pytest.mark.parametrize("changes", DAMAGED, ids=str)
def test_a_damaged_member_is_an_error_of_ours(tmp_path: Path, changes: dict[str, object]) -> None:
    file = tmp_path / "job.json"
    file.write_text(json.dumps({"workers": ["w0"], "members": {"w0": member(**changes)}}))
    with pytest.raises(CollectiveError) as raised:
        Communicator.of_job(JobFile(file, 1).own(0, None)[1])
    assert raised.value.kind == "argument"
