"""Groups of some of four ranks whose job has parts for a mesh of 2 x 2: in a file, or from a controller."""

from __future__ import annotations

import logging

import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

from catchment.host.collectives import CollectiveError
from catchment.host.torch.distributed.native_group import switch_of
from catchment.host.torch.distributed.settings import Settings


class Said(logging.Handler):
    """What the package says while the block runs."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())

    def __enter__(self) -> list[str]:
        logging.getLogger("catchment.torch").addHandler(self)
        return self.texts

    def __exit__(self, *_: object) -> None:
        logging.getLogger("catchment.torch").removeHandler(self)


def generation(group: dist.ProcessGroup | None) -> int | None:
    """The job that carries a group; None: gloo does."""
    switch = switch_of(group or dist.group.WORLD)
    return None if switch is None else switch.communicator.stream.gen


def total(group: dist.ProcessGroup | None, value: float) -> float:
    """The sum of all ranks' values, which every element of the result has."""
    tensor = torch.full((3000,), float(value))
    dist.all_reduce(tensor, group=group)
    assert torch.equal(tensor, tensor[:1].expand(3000))
    return tensor[0].item()


def case_a_mesh_goes_through_the_switch(rank: int, size: int) -> None:
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("rows", "columns"))
    rows, columns = mesh.get_group("rows"), mesh.get_group("columns")
    jobs = [generation(group) for group in (rows, columns, None)]
    assert None not in jobs and len(set(jobs)) == 3, jobs
    told: list[object] = [None] * size
    dist.all_gather_object(told, jobs[:2])
    assert len({job for pair in told for job in pair}) == 4  # type: ignore[attr-defined]  # each has a job of its own
    assert total(columns, rank) == (1 if rank < 2 else 5)
    assert total(rows, rank) == (2 if rank % 2 == 0 else 4)
    assert total(None, rank) == 6
    gathered = torch.empty(2 * 500)
    dist.all_gather_into_tensor(gathered, torch.full((500,), float(rank)), group=rows)
    assert gathered.view(2, 500)[:, 0].tolist() == [rank % 2, rank % 2 + 2]
    mine = torch.empty(700)
    dist.reduce_scatter_tensor(mine, torch.arange(1400.0) + rank, group=columns)
    first = rank % 2 * 700
    assert torch.equal(mine, 2 * torch.arange(first, first + 700.0) + 4 * (rank // 2) + 1)


def case_a_job_file_has_each_part_once(rank: int, size: int) -> None:
    """Groups come after the mesh: its rows are taken, by gloo goes who comes later, and all of that is said once."""
    with Said() as texts:
        pairs = [dist.new_group([0, 1]) for _ in range(2)]
    if rank < 2:
        assert [generation(pair) for pair in pairs] == [None, None]
        assert [total(pair, rank) for pair in pairs] == [1, 1]
        assert len(texts) == 1, texts
        assert "has no part left for the group of w0, w1, which goes by gloo" in texts[0]
    else:
        assert texts == []


def case_a_set_without_a_part_is_told_what_to_add(rank: int, size: int) -> None:
    with Said() as texts:
        cross, three, every = dist.new_group([3, 0]), dist.new_group([0, 1, 3]), dist.new_group()
    assert generation(every) is None and total(every, rank) == 6
    assert texts[-1].endswith("create it with `catchment job create ... --grid outer=4`")
    if rank in (0, 3):
        assert generation(cross) is None and total(cross, rank) == 3
        assert "the group of w0, w3, which goes by gloo; no --grid has such a part" in texts[0], texts
    if rank != 2:
        assert generation(three) is None and total(three, rank) == 4
        assert "no --grid has such a part" in texts[-2], texts


def case_a_controller_makes_every_group(rank: int, size: int) -> None:
    """Groups of any ranks, in any order, again and again."""
    for _ in range(2):
        order = [3, 0, 2]
        group = dist.new_group(order, sort_ranks=False)
        if rank in order:
            assert generation(group) is not None
            gathered = [torch.zeros(5) for _ in order]
            dist.all_gather(gathered, torch.full((5,), float(rank)), group=group)
            assert [part[0].item() for part in gathered] == order
            dist.destroy_process_group(group)
    every = dist.new_group()
    assert generation(every) not in (None, generation(None)) and total(every, rank) == 6


def case_a_group_that_a_switch_has_no_room_for_goes_by_gloo(rank: int, size: int) -> None:
    """The last one: slots for each until the switch has none; then gloo carries it.  Ranks 0, 1 are workers 1, 3."""
    made = []
    with Said() as texts:
        while not texts and len(made) < 100:
            made.append(dist.new_group([0, 1]))
            if rank > 1:
                break
    if rank < 2:
        assert generation(made[-2]) is not None and generation(made[-1]) is None
        assert "a group of workers [1, 3] goes by gloo: " in texts[0] and "slots in a row" in texts[0], texts
        assert [total(group, rank) for group in made[-2:]] == [1, 1]


def case_a_groups_own_settings_do_not_lose_the_job(rank: int, size: int) -> None:
    group = dist.new_group([2, 3], pg_options=Settings(companion=False))
    if rank > 1:
        assert generation(group) is not None and total(group, rank) == 5
        with pytest.raises(CollectiveError, match="no companion"):
            dist.all_reduce(torch.ones(3, dtype=torch.float64), group=group)
