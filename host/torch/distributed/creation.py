"""Makes a process group: finds the switch, agrees with the other ranks on who is who, opens the communicator."""

from __future__ import annotations

import json
import logging
import time
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

import torch.distributed as dist
from torch._C._distributed_c10d import Store

from catchment.host.collectives import CollectiveError
from catchment.host.torch.distributed import local_seat, switch_command
from catchment.host.torch.distributed.companion import Companion
from catchment.host.torch.distributed.controller_seat import ControllerSeat
from catchment.host.torch.distributed.file_seat import FileSeat
from catchment.host.torch.distributed.local_seat import LocalSeat
from catchment.host.torch.distributed.native_group import in_native
from catchment.host.torch.distributed.process_group import SwitchProcessGroup
from catchment.host.torch.distributed.ranks import RankOrder
from catchment.host.torch.distributed.seat import Seat
from catchment.host.torch.distributed.settings import Settings
from catchment.host.torch.distributed.switch_group import SwitchGroup

_LOG: Final = logging.getLogger("catchment.torch")
_JOIN_SECONDS: Final = 60.0
_READING: Final = 5.0
_MAKING: Final = timedelta(minutes=5)  # the switch program may have to be compiled first


@dataclass(frozen=True, slots=True)
class _Taken:
    """Who has the job, and this host's address in its network."""

    group: weakref.ref[SwitchGroup]
    address: str | None

    @property
    def now(self) -> bool:
        """Whether it still has it."""
        group = self.group()
        return group is not None and not group.closed


_JOB: Final[deque[_Taken]] = deque(maxlen=1)


def create(place: Any, options: Any) -> Any:
    """What torch calls for each group that this process is in.

    Args:
        place: store, group_rank, group_size, timeout, group_id, global_ranks_in_group.
        options: a `Settings`, or None: the environment's.

    Raises:
        CollectiveError: there is no way to the switch; every rank of the group raises it.
    """
    if options is not None and not isinstance(options, Settings):
        raise CollectiveError(
            f"pg_options is a {type(options).__name__}", kind="argument", hint="give a host.torch.distributed.Settings"
        )
    settings = options or Settings.of_environment()
    rank, size, timeout = int(place.group_rank), int(place.group_size), place.timeout
    agreement = _Agreement(place.store, rank, size, timeout)
    switch, address = None, None
    if _has_job(settings, list(place.global_ranks_in_group), size):
        switch, address = _open(agreement, settings, timeout)
        _JOB.append(_Taken(weakref.ref(switch), address))
    else:
        address = _JOB[0].address if _JOB else None
        _LOG.info("group %s of %d ranks has no job of its own: gloo carries it", place.group_id, size)
    companion = Companion(place.store, rank, size, timeout, address, wanted=settings.companion or switch is None)
    group = SwitchProcessGroup(place.store, rank, size, switch, companion)
    return in_native(group, settings.scaling, settings.native)


def _has_job(settings: Settings, global_ranks: list[int], size: int) -> bool:
    """One rank needs no switch. A job that exists is one, for the first group of all ranks; others have none."""
    if size == 1:
        return False
    if settings.job is None and settings.controller is None:
        return True
    return not any(taken.now for taken in _JOB) and (not global_ranks or len(global_ranks) == dist.get_world_size())


class _Agreement:
    """What ranks tell each other through torch's store before there is a group."""

    def __init__(self, store: Store, rank: int, size: int, timeout: timedelta) -> None:
        self._store = store
        self._timeout = timeout
        self.rank = rank
        self.size = size

    def of_first(self, key: str, make: Callable[[], Any]) -> Any:
        """What rank 0 made, which may take its time; its failure is everybody's.

        Raises:
            CollectiveError: rank 0 could not.
        """
        if self.rank == 0:
            try:
                said = {"made": make()}
            except CollectiveError as error:
                said = {"failed": error.message, "hint": error.hint, "kind": error.kind}
            self._store.set(key, json.dumps(said))
        said = json.loads(self._get(key, 0, max(self._timeout, _MAKING)))
        if "failed" in said:
            raise CollectiveError(said["failed"], kind=said["kind"], hint=said["hint"], peers=(0,))
        return said["made"]

    def of_all(self, key: str, value: Any) -> list[Any]:
        """What every rank said."""
        self._store.set(f"{key}/{self.rank}", json.dumps(value))
        said = [json.loads(self._get(f"{key}/{rank}", rank, self._timeout)) for rank in range(self.size)]
        self._store.add(f"{key}/read", 1)
        return said

    def await_readers(self, key: str) -> None:
        """Let the others read what was said before this process, and with it perhaps the store, ends."""
        deadline = time.monotonic() + _READING
        while self._store.add(f"{key}/read", 0) < self.size and time.monotonic() < deadline:
            time.sleep(0.01)

    def _get(self, key: str, rank: int, timeout: timedelta) -> bytes:
        try:
            self._store.wait([key], timeout)
            return self._store.get(key)
        except RuntimeError as error:
            raise CollectiveError(
                f"rank {rank} has not come", kind="missing", peers=(rank,), hint=str(error).splitlines()[0]
            ) from None


def _open(agreement: _Agreement, settings: Settings, timeout: timedelta) -> tuple[SwitchGroup, str | None]:
    """The group's switch, and this host's address in its network; None: one machine."""
    failure: CollectiveError | None = None
    told: dict[str, Any] = {}
    seat = communicator = None
    try:
        seat = _seat(agreement, settings)
        communicator = seat.open(timeout=timeout.total_seconds(), scaling=settings.scaling)
        told = {"worker": communicator.rank}
    except CollectiveError as error:
        failure = error
        told = {"failed": str(error)}
    everybody = agreement.of_all("places", told)
    if seat is None or communicator is None or failure is not None:
        agreement.await_readers("places")
        raise failure or AssertionError
    failed = {rank: said["failed"] for rank, said in enumerate(everybody) if "failed" in said}
    if failed:
        communicator.close(0.0)
        seat.leave()
        first = min(failed)
        raise CollectiveError(
            f"rank {first} has no way to the switch: {failed[first]}", kind="system", peers=tuple(failed)
        )
    order = RankOrder([said["worker"] for said in everybody])
    return SwitchGroup(seat, communicator, order, agreement.rank), seat.address


def _seat(agreement: _Agreement, settings: Settings) -> Seat:
    if settings.controller is not None:
        return ControllerSeat(settings.controller, size=agreement.size, timeout=_JOIN_SECONDS)
    if settings.job is not None:
        return FileSeat(settings.job, rank=agreement.rank, size=agreement.size, host=settings.host)
    machines = agreement.of_all("machines", local_seat.machine())
    others = [rank for rank, machine in enumerate(machines) if machine != machines[0]]
    if others:
        raise CollectiveError(
            "the ranks are on several machines, and no switch is named",
            kind="argument",
            peers=others,
            hint="set CATCHMENT_CONTROLLER or CATCHMENT_JOB; see docs/pytorch.md",
        )
    path = agreement.of_first("switch", lambda: switch_command.start(agreement.size, settings.local_switch))
    return LocalSeat(path, agreement.rank)
