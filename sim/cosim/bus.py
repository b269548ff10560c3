"""The registers of a device on the machine's clock; writes are posted, as over PCIe."""

from __future__ import annotations

from typing import Any

from catchment.rtl.driver.bus import BusError
from catchment.rtl.generated import nic_regs as regs
from catchment.sim.cosim.errors import CosimError

_OKAY = 0
_NO_ANSWER = 0xFF
_RELAX = 32
_DOORBELLS = frozenset({regs.PUSH_RING.address, regs.PULL_RING.address})


class ClockedBus:
    """A `RegisterBus`: while the driver waits for one device, the whole machine goes on."""

    def __init__(self, world: Any, registers: Any) -> None:
        self._world = world
        self._registers = registers
        self._held: dict[int, int] | None = None

    def read(self, address: int) -> int:
        """A register's word, after all writes before it.

        Raises:
            BusError: this access or a write before it failed.
        """
        self._registers.read(address)
        self._world.run_accesses(self._registers)
        return self._answers()[-1]

    def write(self, address: int, value: int) -> None:
        """Write a word some clocks from now; an error shows at the next read."""
        if self._held is not None and address in _DOORBELLS:
            if address in self._held:
                raise CosimError("one push and one pull of a host can be rung together: ring the others later")
            self._held[address] = value
            return
        self._registers.write(address, value)

    def relax(self) -> None:
        """What the driver calls while it waits."""
        self._world.run(_RELAX)

    def hold(self) -> None:
        """Doorbells do not ring until `ring`."""
        self._held = {}

    def ring(self) -> None:
        """Ring those that were held, in the next clocks."""
        held, self._held = self._held or {}, None
        for address, value in held.items():
            self._registers.write(address, value)

    def _answers(self) -> list[int]:
        values = []
        for reads, address, response, value in self._registers.answers():
            if response != _OKAY:
                what = f"{'read of' if reads else 'write to'} {address:#05x}"
                problem = "was not answered" if response == _NO_ANSWER else f"was answered with error {response}"
                raise BusError(f"{what} {problem}")
            values.append(value)
        return values
