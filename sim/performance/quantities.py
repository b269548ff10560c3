"""Quantities as people write them, each with its unit: 400ns, 1MiB, 100gbps."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum

_WRITTEN = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)\s*([A-Za-z/%]*)\s*")
_WHOLE = re.compile("[+-]?[0-9]{1,30}")
_BINARY = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
MOST = 1e24
"""No quantity is larger, in the inner unit of its dimension: what is computed of quantities stays finite."""
_ROUNDED = 1e-12
_DECIMAL = {"kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


class Dimension(Enum):
    """What a quantity measures, and its units as multiples of the one that is used inside."""

    TIME = ("time", {"ps": 1, "ns": 1e3, "us": 1e6, "ms": 1e9, "s": 1e12})
    SIZE = ("size", {**_BINARY, **_DECIMAL})
    BIT_RATE = ("rate", {"mbps": 1e6, "gbps": 1e9, "tbps": 1e12})
    BYTE_RATE = ("rate", {"MBps": 1e6, "GBps": 1e9, "TBps": 1e12})
    FLOPS = ("speed", {"gflops": 1e9, "tflops": 1e12, "pflops": 1e15})
    FRAME_RATE = ("rate", {"pps": 1, "mpps": 1e6, "gpps": 1e9})

    @property
    def title(self) -> str:
        """What it is called in messages."""
        return str(self.value[0])

    @property
    def units(self) -> Mapping[str, float]:
        """Unit -> how many of the inner unit it is (ps, bytes, bits or bytes a second, operations a second)."""
        units: Mapping[str, float] = self.value[1]
        return units


def quantity(text: str, dimension: Dimension) -> float:
    """The number that a text stands for, in the inner unit of its dimension.

    Raises:
        ValueError: no number, no unit of this dimension (the message says which there are), or more than `MOST`.
    """
    match = _WRITTEN.fullmatch(text)
    units = ", ".join(dimension.units)
    if match is None:
        raise ValueError(f"{text!r} is no {dimension.title}: give a number and a unit ({units})")
    number, unit = match.groups()
    if unit not in dimension.units:
        what = f"{unit!r} is no unit of a {dimension.title}" if unit else f"{text!r} has no unit"
        raise ValueError(f"{what}: give one of {units}")
    value = float(number) * dimension.units[unit]
    if value > MOST:
        most = f"{MOST / dimension.units[unit]:.3g}{unit}"
        raise ValueError(f"{text!r} is too much for a {dimension.title}: give {most} at most")
    return value


def whole(key: str, text: str) -> int:
    """The whole number that a setting's text stands for, in decimal digits.

    Raises:
        ValueError: it is none, or has more than 30 digits; the message names the key.
    """
    if not _WHOLE.fullmatch(text):
        raise ValueError(f"{key}={text[:40]}: give a whole number")
    return int(text)


def size_text(size: int) -> str:
    """Bytes in the largest binary unit that they are a whole number of."""
    unit = max((u for u, n in _BINARY.items() if size and size % n == 0), key=_BINARY.__getitem__, default="B")
    return f"{size // _BINARY[unit]}{unit}"


def about_time(seconds: float) -> str:
    """A time to four digits, in the unit in which it is 1 or more: 3.074 us, 1.900 s; 0 s."""
    return _about(seconds * Dimension.TIME.units["s"], Dimension.TIME.units) if seconds else "0 s"


def about_size(size: float) -> str:
    """Bytes to four digits, in the binary unit in which they are 1 or more: 96.00 MiB; 0 B."""
    return _about(size, _BINARY)


def about_share(share: float) -> str:
    """A share in per cent: 6.9 %; less than 0.05 % is no 0.0 % unless sums were rounded to it."""
    return "< 0.1 %" if _ROUNDED < share < 0.0005 else f"{100 * share:.1f} %"


def _about(value: float, units: Mapping[str, float]) -> str:
    """A value to four digits in one of these units, smallest first; those before the point are all there."""
    inner = next(iter(units))
    unit = max((each for each in units if value >= 0.99995 * units[each]), key=units.__getitem__, default=inner)
    number = value / units[unit]
    whole_ones = unit == inner and number == round(number)
    digits = 0 if whole_ones else 3 if number < 9.9995 else 2 if number < 99.995 else 1 if number < 999.95 else 0
    return f"{number:,.{digits}f} {unit}"
