"""A rank's place in a job: what its communicator needs to know, places in its parts, and which ranks are gone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from catchment.host.collectives import Communicator, Scaling
from catchment.host.torch.distributed.agreement import Agreement


@dataclass(frozen=True, slots=True)
class Loss:
    """A member of the job, or its switch, is gone.

    Attributes:
        text: a sentence that names what is gone.
        ranks: those that are gone, where they are known.
        hosts: names of those that are gone with all their ranks, for a loss that names no ranks.
        kind: of the error that every rank gets: ``missing`` for a rank, ``unreachable`` for the switch.
    """

    text: str
    ranks: Sequence[int] = ()
    hosts: Sequence[str] = ()
    kind: str = "missing"


class Seat(Protocol):
    """A rank's place in a job, until `leave`."""

    @property
    def name(self) -> str:
        """What messages call the job."""

    @property
    def address(self) -> str | None:
        """This host's IPv4 address in the job's network; None: all ranks are on one machine."""

    @property
    def host(self) -> str | None:
        """This host's name in the job; None: all ranks are on one machine."""

    def open(self, *, timeout: float, scaling: Scaling) -> Communicator:
        """This rank's communicator; a timeout in seconds.

        Raises:
            CollectiveError: it cannot be opened.
        """

    def watch(self, lost: Callable[[Loss], None]) -> None:
        """Call `lost`, from a thread of the seat, when a member is gone."""

    def part(self, agreement: Agreement) -> Seat | None:
        """A place in a job for some of this job's ranks, all of which call this; None on all: the log says why.

        Args:
            agreement: of these ranks.

        Raises:
            CollectiveError: a rank is gone.
        """

    def leave(self) -> None:
        """Give the place up in order; again: nothing happens."""
