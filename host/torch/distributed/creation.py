"""Makes a process group: finds the switch, agrees with all ranks which worker each one is, opens the communicator."""

from __future__ import annotations

import logging
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, Final

import torch.distributed as dist

from catchment.host.collectives import CollectiveError
from catchment.host.torch.distributed import file_host, local_seat
from catchment.host.torch.distributed.agreement import Agreement
from catchment.host.torch.distributed.companion import Companion
from catchment.host.torch.distributed.file_seat import FileSeat, RailChoice
from catchment.host.torch.distributed.native_group import in_native
from catchment.host.torch.distributed.process_group import SwitchProcessGroup
from catchment.host.torch.distributed.ranks import RankOrder
from catchment.host.torch.distributed.seat import Seat
from catchment.host.torch.distributed.settings import Settings
from catchment.host.torch.distributed.switch_group import SwitchGroup

_LOG: Final = logging.getLogger("catchment.torch")
_JOIN_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class _Taken:
    """The group of all ranks, and this host's address in its network."""

    group: weakref.ref[SwitchGroup]
    address: str | None

    @property
    def now(self) -> SwitchGroup | None:
        """The group, until it is left."""
        group = self.group()
        return None if group is None or group.closed else group


_LONGEST: Final = timedelta(days=36_500)
"""A timeout at most: the clocks of torch's stores have no later times."""

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
    rank, size, timeout = int(place.group_rank), int(place.group_size), min(place.timeout, _LONGEST)
    ranks = list(place.global_ranks_in_group)
    everybody = not ranks or len(ranks) == dist.get_world_size()
    own = options is not None and (options.job is not None or options.controller is not None)
    known = next(filter(None, (taken.now for taken in _JOB)), None)
    lost = None if known is None else partial(_lost, known, ranks)
    agreement = Agreement(place.store, rank, size, timeout, lost)
    whole = None if own else known
    opened = None
    if size > 1 and whole is not None:
        opened = _open(agreement, settings, timeout, partial(whole.seat.part, agreement), ranks)
    elif size > 1 and (own or everybody or (settings.job is None and settings.controller is None)):
        opened = _open(agreement, settings, timeout, partial(_seat, agreement, settings), ranks)
    switch, address = opened or (None, _JOB[0].address if _JOB else None)
    if switch is None:
        _LOG.info("group %s of %d ranks has no job of its own: gloo carries it", place.group_id, size)
    elif everybody and whole is None:
        _JOB.append(_Taken(weakref.ref(switch), address))
    companion = Companion(agreement.store, rank, size, timeout, address, wanted=settings.companion or switch is None)
    group = SwitchProcessGroup(agreement.store, rank, size, switch, companion)
    try:
        return in_native(group, settings.scaling, settings.native)
    except CollectiveError:
        group.shutdown()
        raise


def _lost(whole: SwitchGroup, ranks: list[int], patience: float) -> CollectiveError | None:
    """What to raise if one of these ranks is gone, as the group of all ranks knows; none: any of all.

    A loss that names no rank is the switch's or another host's, and a group may find another switch.
    """
    error = whole.lost(patience)
    if error is None or not error.peers or (ranks and not set(ranks) & set(error.peers)):
        return None
    return error


def _open(
    agreement: Agreement,
    settings: Settings,
    timeout: timedelta,
    take: Callable[[], Seat | None],
    of_all: Sequence[int] = (),
) -> tuple[SwitchGroup, str | None] | None:
    """The group's switch, and this host's address in its network (None: one machine); None: `take` finds no place."""
    with ExitStack() as taken:
        failure: Exception | None = None
        place: dict[str, Any] = {}
        seat = communicator = None
        try:
            seat = take()
            if seat is not None:
                taken.callback(seat.leave)
                communicator = seat.open(timeout=timeout.total_seconds(), scaling=settings.scaling)
                taken.callback(communicator.close, 0.0)
                place = {"worker": communicator.rank, "host": seat.host}
        except Exception as error:  # the others wait for an answer
            failure = error
            place = {"failed": str(error) if isinstance(error, CollectiveError) else repr(error)}
        everybody = agreement.of_all("places", place)
        if failure is not None:
            agreement.await_readers("places")
            raise failure
        failed = {rank: said["failed"] for rank, said in enumerate(everybody) if "failed" in said}
        if failed:
            first = min(failed)
            raise CollectiveError(
                f"rank {first} has no way to the switch: {failed[first]}", kind="system", peers=tuple(failed)
            )
        if seat is None or communicator is None:
            return None
        order = RankOrder([said["worker"] for said in everybody], of_all)
        hosts = [said["host"] for said in everybody]
        group = SwitchGroup(seat, communicator, order, agreement.rank, hosts)
        taken.pop_all()
    return group, seat.address


def _seat(agreement: Agreement, settings: Settings) -> Seat:
    if settings.controller is not None:
        from catchment.host.torch.distributed import controlled_host  # noqa: PLC0415  it needs gRPC

        return controlled_host.take(
            agreement,
            settings.controller,
            timeout=_JOIN_SECONDS,
            absent=settings.absent,
            command=settings.local_switch,
        )
    if settings.job is not None:
        seat = FileSeat.of(
            settings.job,
            rank=agreement.rank,
            size=agreement.size,
            host=settings.host,
            absent=settings.absent,
            choice=RailChoice(settings.rails, settings.rail_policy),
        )
        whole = len(seat.workers) == agreement.size
        return seat if whole else file_host.take(agreement, seat, settings.local_switch)
    return local_seat.take(agreement, settings.local_switch)
