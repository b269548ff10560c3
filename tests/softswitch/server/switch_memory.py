"""What a switch process takes of the machine's memory."""

from __future__ import annotations

from pathlib import Path

from catchment.softswitch.process import SwitchProcess

MIB = 1 << 20


def peak_memory(switch: SwitchProcess) -> int:
    """The most bytes of memory that the switch ever had."""
    lines = Path(f"/proc/{switch.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:"))
