"""Every way to a switch watches it: how long it may be gone reaches the ports, and an error names a dead one."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from catchment.host.collectives import ABSENT, Block, CollectiveError
from catchment.host.torch.distributed import controller_seat, file_seat
from catchment.host.torch.distributed.agreement import Agreement
from catchment.host.torch.distributed.controller_seat import ControllerSeat
from catchment.host.torch.distributed.file_seat import FileSeat
from catchment.host.torch.distributed.seat import Seat
from catchment.host.torch.distributed.settings import ControllerAccess, Settings
from catchment.sim.lab.shm_lab import ShmLab
from catchment.wire.generated.constants import UDP_PORT

NAMES = ("w0", "w1")
PATIENCE = 60.0  # s; a dead switch is told of after `SOON`
SOON = 0.3


class Ranks:
    """What a rank that is alone in its test hears of the others: what it says itself."""

    rank = 0

    def of_all(self, _: str, own: Any) -> list[Any]:
        return [own] if isinstance(own, int) else list(NAMES) if own in NAMES else [own] * 2


AGREEMENT = cast("Agreement", Ranks())


def write_job(path: Path, members: dict[str, Any]) -> Path:
    """A file as `catchment job show --json` writes it, with a part of the same workers."""
    parts = {"pair": {"workers": list(NAMES)}}
    whole = {name: {**member, "parts": {"pair": member}} for name, member in members.items()}
    document = {"name": "job", "kind": "allreduce", "workers": list(NAMES), "members": whole, "parts": parts}
    path.write_text(json.dumps(document))
    return path


def on_udp(wid: int, switch: tuple[str, int]) -> dict[str, Any]:
    """What a member needs that reaches its switch by UDP."""
    sums = {"gen": 7, "workers": len(NAMES), "slots": 16, "lanes": 64}
    return {
        "job": "job",
        "role": "peer",
        "wid": wid,
        "local": ["127.0.0.1", UDP_PORT + 1 + wid],
        "switch": list(switch),
        "switch_name": "s7",
        "sums": sums,
    }


def file_seats(folder: Path) -> list[Seat]:
    """A place in a job, and one in a part of it."""
    file = write_job(folder / "job.json", {name: on_udp(wid, ("127.0.0.1", 9)) for wid, name in enumerate(NAMES)})
    whole = FileSeat.of(file, rank=0, size=2, host="w0", absent=SOON)
    part = whole.part(AGREEMENT)
    assert part is not None
    return [whole, part, whole.with_member(whole.member)]


def controller_seats(monkeypatch: pytest.MonkeyPatch) -> list[Seat]:
    """A place in a controller's job, and one in a part that the controller makes."""
    description = SimpleNamespace(
        job="job",
        kind="allreduce",
        role="peer",
        wid=0,
        label="pair",
        streams={"sums": SimpleNamespace(workers=2)},
        local=("127.0.0.1", 1),
    )
    member = SimpleNamespace(
        description=description,
        take=lambda make: make(description),
        superseded=lambda: False,
        wait_complete=lambda _: None,
        split=lambda *_, **__: [description],
        follow=lambda _: None,
    )
    monkeypatch.setattr(controller_seat, "Membership", SimpleNamespace(join=lambda **_: member))
    monkeypatch.setattr(controller_seat, "Credentials", SimpleNamespace(of=lambda *_: None))
    access = ControllerAccess(address="controller:1", job="job", host="w0", token="", certificates=Path())
    whole = ControllerSeat(access, size=2, timeout=1.0, absent=SOON)
    part = whole.part(AGREEMENT)
    assert part is not None
    return [whole, part]


def given_to(
    monkeypatch: pytest.MonkeyPatch, module: Any, maker: str, seats: Callable[[], list[Seat]]
) -> list[dict[str, Any]]:
    """What each seat opens its communicator with."""
    seen: list[dict[str, Any]] = []
    monkeypatch.setattr(module, "Communicator", SimpleNamespace(**{maker: lambda _, **options: seen.append(options)}))
    made = seats()
    for seat in made:
        seat.open(timeout=9.0, scaling=Block())
    assert len(seen) == len(made)
    return seen


def test_a_file_s_seats_give_their_ports_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = given_to(monkeypatch, file_seat, "of_job", lambda: file_seats(tmp_path))
    assert [options["absent"] for options in seen] == [SOON] * 3


def test_a_controller_s_seats_give_their_ports_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = given_to(monkeypatch, controller_seat, "of_description", lambda: controller_seats(monkeypatch))
    assert [options["absent"] for options in seen] == [SOON] * 2


def test_a_dead_switch_is_told_of_within_two_seconds_unless_set() -> None:
    assert Settings().absent == ABSENT < 2.0


def test_a_dead_switch_of_a_job_file_over_udp_is_named(tmp_path: Path) -> None:
    """Its address stays bound, as a host leaves it whose switch has died: nothing says that nobody is there."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as dead:
        dead.bind(("127.0.0.1", 0))
        members = {name: on_udp(wid, dead.getsockname()) for wid, name in enumerate(NAMES)}
        for member in members.values():
            member["local"] = ["127.0.0.1", 0]
        seat = FileSeat.of(write_job(tmp_path / "job.json", members), rank=0, size=2, host="w0", absent=SOON)
        with seat.open(timeout=3600.0, scaling=Block()) as alone, pytest.raises(CollectiveError) as caught:
            alone.all_reduce(np.ones(5000, np.float32)).wait(PATIENCE)
        assert caught.value.kind == "unreachable"
        assert f"the switch s7 at 127.0.0.1:{dead.getsockname()[1]}" in str(caught.value)


def test_a_dead_switch_of_a_job_file_over_shared_memory_is_named(tmp_path: Path) -> None:
    with ShmLab(NAMES) as lab:
        job = lab.allreduce(NAMES, slots=16)
        members = {name: {**job.describe(name), "port": f"shm:{lab.path(name)}"} for name in NAMES}
        seat = FileSeat.of(write_job(tmp_path / "job.json", members), rank=0, size=2, host="w0", absent=SOON)
        with seat.open(timeout=3600.0, scaling=Block()) as alone:
            work = alone.all_reduce(np.ones(5000, np.float32))
            lab.kill_switch()
            with pytest.raises(CollectiveError, match=r"the switch s1 at .* has gone") as caught:
                work.wait(PATIENCE)
        assert caught.value.kind == "unreachable"
