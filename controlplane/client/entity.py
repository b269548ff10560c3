"""What can be put on a switch or read from it, and what to do with it: `+entry`, `~entry`, `-entry`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Literal, Self

from catchment.controlplane.client.errors import SwitchError
from catchment.controlplane.client.p4info import P4Info
from catchment.wire.generated import p4runtime_pb2

UpdateKind = Literal["insert", "modify", "delete"]
NUMBERS: dict[UpdateKind, int] = {
    "insert": p4runtime_pb2.Update.INSERT,
    "modify": p4runtime_pb2.Update.MODIFY,
    "delete": p4runtime_pb2.Update.DELETE,
}
"""P4Runtime's numbers of the kinds of update."""


def field_tag(message: Any, name: str) -> bytes:
    """What precedes the length of a nested message, the field `name` of a message type, in serialized form."""
    return _varint(message.DESCRIPTOR.fields_by_name[name].number << 3 | _LENGTH_DELIMITED)


def nested(tag: bytes, message: bytes) -> bytes:
    """A serialized message as a field of another one, by the tag that `field_tag` gives."""
    size = len(message)
    return tag + (_SIZES[size] if size < len(_SIZES) else _varint(size)) + message


def _varint(number: int) -> bytes:
    groups = [number >> shift & 0x7F for shift in range(0, max(1, number.bit_length()), 7)]
    return bytes([*(group | 0x80 for group in groups[:-1]), groups[-1]])


_LENGTH_DELIMITED = 2
_SIZES = tuple(_varint(size) for size in range(1024))
_IN_UPDATE = field_tag(p4runtime_pb2.Update, "entity")
_HEADS: dict[UpdateKind, bytes] = {
    kind: p4runtime_pb2.Update(type=number).SerializeToString() for kind, number in NUMBERS.items()
}


class Entity(ABC):
    """A frozen value that stands for one P4Runtime entity; also a pattern that selects what is read."""

    __slots__ = ()

    @abstractmethod
    def key(self) -> str:
        """What it is in words, for messages."""

    @abstractmethod
    def subject(self) -> str:
        """What is read with it as a pattern, in words."""

    @abstractmethod
    def fill(self, message: Any, p4info: P4Info, kind: UpdateKind) -> None:
        """Fill an empty `p4.v1.Entity` for an update.

        Raises:
            SwitchError: a name that the program does not have, or a value that does not fit.
        """

    def serialized(self, p4info: P4Info, kind: UpdateKind) -> bytes:
        """The `p4.v1.Entity` for an update, serialized; errors as `fill`."""
        message = p4runtime_pb2.Entity()
        self.fill(message, p4info, kind)
        return bytes(message.SerializeToString())

    @abstractmethod
    def select(self, message: Any, p4info: P4Info) -> None:
        """Fill an empty `p4.v1.Entity` so that reading it gives what this one, as a pattern, stands for.

        Raises:
            SwitchError: a name that the program does not have.
        """

    @classmethod
    @abstractmethod
    def decode(cls, message: Any, p4info: P4Info) -> Self:
        """The value that a `p4.v1.Entity` read from the switch stands for."""

    def matches(self, found: Self) -> bool:
        """Whether something that the switch gave belongs to this pattern."""
        return True

    def __pos__(self) -> Update:
        return Update("insert", self)

    def __neg__(self) -> Update:
        return Update("delete", self)

    def __invert__(self) -> Update:
        return Update("modify", self)


@dataclass(frozen=True, slots=True)
class Update:
    """One change to a switch: `+entity` inserts, `~entity` modifies, `-entity` deletes."""

    kind: UpdateKind
    entity: Entity

    def serialized(self, p4info: P4Info) -> bytes:
        """The `p4.v1.Update`, serialized.

        Raises:
            SwitchError: a name that the program does not have, or a value that does not fit.
        """
        try:
            entity = self.entity.serialized(p4info, self.kind)
        except (TypeError, ValueError) as error:  # protobuf's: a number that its field has no bits for, or no number
            raise SwitchError(f"{self.entity.key()}: {error}") from None
        return _HEADS[self.kind] + nested(_IN_UPDATE, entity)

    def __str__(self) -> str:
        return f"{self.kind} {self.entity.key()}"
