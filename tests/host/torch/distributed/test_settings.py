"""What people set, and how ranks and worker indices go together."""

from __future__ import annotations

import json
import math
import random
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from catchment.checkout import ROOT
from catchment.controlplane.jobs import Allocator, JobRequest
from catchment.controlplane.topology import Topology
from catchment.host.collectives import Block, CollectiveError, Delayed, Fixed, RailPolicy, Scaling, Whole
from catchment.host.torch.distributed.file_seat import FileSeat
from catchment.host.torch.distributed.hooks import SwitchHook
from catchment.host.torch.distributed.job_file import JobFile
from catchment.host.torch.distributed.native_group import in_native
from catchment.host.torch.distributed.ranks import RankOrder
from catchment.host.torch.distributed.settings import Settings

CONTROLLER = {
    "CATCHMENT_CONTROLLER": "10.1.0.1:50061",
    "CATCHMENT_JOB": "train",
    "CATCHMENT_TOKEN": "secret",
    "CATCHMENT_CERTIFICATES": "/etc/catchment",
    "CATCHMENT_HOST": "w3",
}


def test_nothing_set_is_one_machine() -> None:
    assert Settings.of_environment({}) == Settings(Block(), None, None, None, True, None)


def test_what_is_set_is_taken(tmp_path: Path) -> None:
    assert Settings.of_environment({"CATCHMENT_SCALING": "fixed:-3"}).scaling == Fixed(-3)
    assert Settings.of_environment({"CATCHMENT_SCALING": "whole"}).scaling == Whole()
    assert Settings.of_environment({"CATCHMENT_PACKED": "1"}).scaling == Block(packed=True)
    packed = {"CATCHMENT_PACKED": "1", "CATCHMENT_SCALING": "fixed:-3"}
    assert Settings.of_environment(packed).scaling == Fixed(-3, packed=True)
    assert Settings.of_environment({"CATCHMENT_PACKED": "0"}).scaling == Block()
    assert Settings.of_environment({"CATCHMENT_JOB": "job.json"}).job == Path("job.json")
    assert not Settings.of_environment({"CATCHMENT_COMPANION": "0"}).companion
    assert Settings.of_environment({"CATCHMENT_PROCESS_GROUP": "c++"}).native is True
    assert Settings.of_environment({"CATCHMENT_PROCESS_GROUP": "python"}).native is False
    on_rails = Settings.of_environment(
        {"CATCHMENT_JOB": "job.json", "CATCHMENT_RAILS": "b, a", "CATCHMENT_RAIL_POLICY": "slices"}
    )
    assert (on_rails.rails, on_rails.rail_policy) == (("b", "a"), RailPolicy.SLICES)
    assert Settings.of_environment({"CATCHMENT_RAILS": "all"}).rails == ()
    access = Settings.of_environment(CONTROLLER).controller
    assert access is not None and (access.job, access.host, access.token) == ("train", "w3", "secret")
    assert "secret" not in repr(access)
    file = tmp_path / "token"
    file.write_text("from a file\n")
    by_file = {**CONTROLLER, "CATCHMENT_TOKEN_FILE": str(file)}
    del by_file["CATCHMENT_TOKEN"]
    access = Settings.of_environment(by_file).controller
    assert access is not None and access.token == "from a file"


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"CATCHMENT_SCALING": "fixed"}, "CATCHMENT_SCALING=fixed"),
        ({"CATCHMENT_SCALING": "fixed:128"}, "-128 to 127"),
        ({"CATCHMENT_SCALING": "delayed"}, "give block"),
        ({"CATCHMENT_COMPANION": "yes"}, "give 0 or 1"),
        ({"CATCHMENT_PACKED": "int16"}, "CATCHMENT_PACKED=int16"),
        ({"CATCHMENT_PROCESS_GROUP": "rust"}, "give c[+][+] or python"),
        ({"CATCHMENT_JOB": "x", "CATCHMENT_RAILS": "a,,b"}, "CATCHMENT_RAILS=a,,b"),
        ({"CATCHMENT_RAILS": "a"}, "rails a without a job file"),
        ({"CATCHMENT_RAIL_POLICY": "best"}, "give one of waterfill"),
        ({"CATCHMENT_CONTROLLER": "x:1"}, "CATCHMENT_JOB and CATCHMENT_CERTIFICATES"),
        ({**CONTROLLER, "CATCHMENT_TOKEN": ""}, "CATCHMENT_TOKEN_FILE"),
        ({**CONTROLLER, "CATCHMENT_TOKEN": "", "CATCHMENT_TOKEN_FILE": "/nothing"}, "cannot be read"),
    ],
)
def test_what_cannot_be_is_said(environment: dict[str, str], said: str) -> None:
    with pytest.raises(CollectiveError, match=said) as caught:
        Settings.of_environment(environment)
    assert caught.value.kind == "argument"


def test_ranks_and_workers_are_each_others_inverse(rng: random.Random) -> None:
    workers = rng.sample(range(7), 7)
    order = RankOrder(workers)
    by_worker = torch.tensor([order.ranks([worker])[0] for worker in range(7)]).view(7, 1)
    assert order.by_rank(by_worker).flatten().tolist() == list(range(7))
    assert order.by_worker(torch.tensor(workers).view(7, 1)).flatten().tolist() == list(range(7))
    assert [order.worker(rank) for rank in range(7)] == workers
    assert RankOrder(range(4)).is_same and not RankOrder([1, 0]).is_same
    with pytest.raises(CollectiveError, match="taken twice"):
        RankOrder([0, 2, 2])


def job(tmp_path: Path, **changes: object) -> Path:
    path = tmp_path / "job.json"
    members = {
        f"w{i}": {"role": "peer", "wid": i, "local": [ip, 51836], "switch": ["127.0.0.9", 51836]}
        for i, ip in enumerate(["192.0.2.1", "127.0.0.1"])
    }
    path.write_text(
        json.dumps({"name": "train", "kind": "allreduce", "workers": ["w0", "w1"], "members": members, **changes})
    )
    return path


def test_a_rank_finds_itself_in_a_job_file(tmp_path: Path) -> None:
    assert FileSeat.of(job(tmp_path), rank=0, size=2, host=None).address == "127.0.0.1"  # the only one of this machine
    assert FileSeat.of(job(tmp_path), rank=1, size=2, host="w0").address == "192.0.2.1"


@pytest.mark.parametrize(
    ("changes", "host", "size", "said"),
    [
        ({"members": {}}, None, 2, "describes no job"),
        ({"workers": []}, None, 2, "0 workers"),
        ({}, "w9", 2, "host w9 is not in the job"),
        ({}, None, 1, "2 workers of kind allreduce, the group 1 ranks"),
    ],
)
def test_a_job_file_that_does_not_fit_is_refused(
    tmp_path: Path, changes: dict[str, object], host: str | None, size: int, said: str
) -> None:
    with pytest.raises(CollectiveError, match=said):
        FileSeat.of(job(tmp_path, **changes), rank=0, size=size, host=host)


def test_a_job_file_may_be_on_several_rails(tmp_path: Path) -> None:
    topology = Topology.load(ROOT / "sim" / "topologies" / "three-rails.yaml")
    request = JobRequest("train", "allreduce", list(topology.hosts), rails=("a", "b"))
    path = tmp_path / "rails.json"
    path.write_text(json.dumps(request.plan(topology, Allocator(topology)).describe_all()))
    seat = FileSeat.of(path, rank=1, size=4, host="w1")
    assert seat.address == str(topology.hosts["w1"].nics[0].ip.ip)
    assert JobFile(path, 4).take_part(seat.workers) is None, "what lets a rail fail is no part for a group of ranks"
    with pytest.raises(CollectiveError, match="on several rails each host is one rank"):
        JobFile(path, 8)


@pytest.mark.parametrize("scaling", [Whole(), Delayed("loss")])
def test_a_scaling_that_the_group_in_cpp_has_not_is_refused_where_that_one_is_wanted(scaling: Scaling) -> None:
    group: Any = SimpleNamespace(switch=object(), be_the_group=lambda: "the one in Python")
    with pytest.raises(CollectiveError, match=rf"c\+\+ with the scaling {type(scaling).__name__}") as raised:
        in_native(group, scaling, wanted=True)
    assert raised.value.kind == "system"
    for wanted in (None, False):
        assert in_native(group, scaling, wanted) == "the one in Python"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"scaling": "block"}, "Settings.scaling 'block': give Block"),
        ({"job": "job.json"}, "Settings.job 'job.json': give the Path"),
        ({"controller": "10.1.0.1:50061"}, "Settings.controller '10.1.0.1:50061': give a ControllerAccess"),
        ({"host": 3}, "Settings.host 3: give the host's name"),
        ({"companion": 0}, "Settings.companion 0: give True or False"),
        ({"native": "c++"}, "Settings.native 'c++': give True for the process group in C++"),
        ({"absent": math.nan}, "a switch that may be absent for nan: give a number of seconds"),
        ({"absent": "2"}, "a switch that may be absent for '2': give a number of seconds"),
        ({"absent": -1.0}, "a switch that may be absent for -1.0 s: give a positive number of seconds"),
        ({"job": Path("x"), "rails": "ab"}, "Settings.rails 'ab': give a tuple"),
        ({"job": Path("x"), "rails": (1, 2)}, "Settings.rails (1, 2): give a tuple"),
        ({"rail_policy": "paper"}, "Settings.rail_policy 'paper': give a RailPolicy: WATERFILL, PAPER"),
        ({"local_switch": ["switch"]}, "Settings.local_switch ['switch']: give a command"),
    ],
)
def test_settings_of_other_types_are_refused_where_they_are_made(options: dict[str, Any], said: str) -> None:
    with pytest.raises(CollectiveError, match=re.escape(said)) as caught:
        Settings(**options)
    assert caught.value.kind == "argument"


def test_a_hooks_scaling_stays_as_it_is_but_for_the_name() -> None:
    hook = SwitchHook(scaling=Delayed("gradients", length=3, margin=2, packed=True))
    assert hook.scaling_of(4) == Delayed("gradients/4", length=3, margin=2, packed=True)
    assert hook.scaling_of(4) is hook.scaling_of(4)
    wrong: Any = "block"
    with pytest.raises(CollectiveError, match="scaling 'block': give Block"):
        SwitchHook(scaling=wrong)
