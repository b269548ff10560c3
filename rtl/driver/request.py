"""A push or pull under way (LuWu, Table 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from catchment.rtl.driver.errors import NicError
from catchment.rtl.driver.memory import Buffer
from catchment.rtl.driver.records import Completion
from catchment.rtl.generated.nic_regs import Status


class RequestError(NicError):
    """A request failed; `completion` says how."""

    def __init__(self, what: str, completion: Completion) -> None:
        super().__init__(f"{what} ended with {completion.status.name} after {completion.moved} bytes")
        self.completion = completion


@dataclass(frozen=True, slots=True)
class Request:
    """Its buffer belongs to the NIC until it is done."""

    kind: Literal["push", "pull"]
    buffer: Buffer
    record: Buffer

    @property
    def done(self) -> bool:
        """The record has been written."""
        return int(self.record.bytes[0]) != Status.PENDING

    @property
    def completion(self) -> Completion:
        """How it ended.

        Raises:
            NicError: it has not ended.
        """
        if not self.done:
            raise NicError(f"the {self.kind} is under way: wait for it")
        return Completion.of(self.record.bytes.tobytes())

    def check(self) -> Completion:
        """Its completion.

        Raises:
            RequestError: it failed.
            NicError: it has not ended.
        """
        completion = self.completion
        if completion.status != Status.OK:
            raise RequestError(f"{self.kind} of {self.buffer.bytes.size} bytes", completion)
        return completion
