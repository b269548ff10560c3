"""How the driver reaches a NIC: words of its register space."""

from __future__ import annotations

from typing import Protocol

from catchment.rtl.driver.errors import NicError


class BusError(NicError):
    """A register access failed: the NIC is gone, or has no such register."""


class RegisterBus(Protocol):
    """Registers of a NIC: a card's memory-mapped BAR, or in simulation rtl.harness.verilated_nic.VerilatedNic."""

    def read(self, address: int) -> int:
        """The 32-bit word at a byte address.

        Raises:
            BusError: it cannot be read.
        """

    def write(self, address: int, value: int) -> None:
        """Write a 32-bit word.

        Raises:
            BusError: it cannot be written.
        """

    def relax(self) -> None:
        """Let a little time pass while the driver waits: yield on a machine, run clocks in simulation."""
