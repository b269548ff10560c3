"""P4Runtime requests out of updates and patterns; the blocking and the asynchronous client send the same ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from catchment.controlplane.client.entity import NUMBERS, Entity, Update
from catchment.controlplane.client.p4info import P4Info
from catchment.wire.generated import p4runtime_pb2

UPDATES = 64
"""Updates in a request: gRPC carries the refused ones in at most 16 KiB of metadata."""


@dataclass(frozen=True, slots=True)
class Batch:
    """A `p4.v1.WriteRequest` without device and election id, and the updates in it."""

    request: Any
    updates: Sequence[Update]

    def words(self) -> list[str]:
        """Each update in words."""
        return [str(update) for update in self.updates]


def batches(updates: Iterable[Update], p4info: P4Info) -> Iterator[Batch]:
    """The requests that make updates, in their order.

    Raises:
        SwitchError: a name that the program does not have, or a value that does not fit.
    """
    remaining = iter(updates)
    while some := tuple(islice(remaining, UPDATES)):
        request = p4runtime_pb2.WriteRequest()
        add = request.updates.add
        for update in some:
            # Filled in place: a copy of a message costs as much as making it.
            update.entity.fill(add(type=NUMBERS[update.kind]).entity, p4info, update.kind)
        yield Batch(request, some)


def selection(pattern: Entity, p4info: P4Info) -> Any:
    """The `p4.v1.Entity` that asks for what a pattern stands for.

    Raises:
        SwitchError: a name that the program does not have.
    """
    query = p4runtime_pb2.Entity()
    pattern.select(query, p4info)
    return query
