"""Reads `glm.toml`, the single source of the numbers of a linear model's training, into checked values."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).with_name("glm.toml")


class GlmNumbersError(ValueError):
    """The description of the numbers is inconsistent; the message says which entry and why."""


@dataclass(frozen=True, slots=True)
class Number:
    """A constant by its name in lower case; `signed` when hardware compares signed values with it."""

    name: str
    value: int
    doc: str
    signed: bool = False


@dataclass(frozen=True, slots=True)
class Loss:
    """A loss function by its name in lower case."""

    name: str
    doc: str


@dataclass(frozen=True, slots=True)
class GlmNumbers:
    """Constants in the order of the file, each width behind its limit; losses in the order of their codes."""

    numbers: tuple[Number, ...]
    losses: tuple[Loss, ...]

    def __getitem__(self, name: str) -> int:
        """The value of a constant.  Raises KeyError."""
        return {number.name: number.value for number in self.numbers}[name]

    @property
    def sigmoid(self) -> tuple[int, ...]:
        """The logistic function at the begin of each segment and at the last one's end, in units of 1 / sigmoid_one."""
        step = math.ldexp(1, self["sigmoid_fraction"] - self["activation_fraction"])
        return tuple(
            round(self["sigmoid_one"] / (1 + math.exp(-step * i))) for i in range(self["sigmoid_segments"] + 1)
        )

    @property
    def segments(self) -> list[tuple[int, int]]:
        """(value at the begin, rise to the next) of each segment of the logistic function."""
        return [(value, after - value) for value, after in pairwise(self.sigmoid)]


def _numbers(entry: Mapping[str, Any]) -> list[Number]:
    name = entry["name"]
    if ("value" in entry) == ("power" in entry):
        raise GlmNumbersError(f"number {name}: give either `value` or `power`")
    value = entry["value"] if "value" in entry else (1 << entry["power"]) - entry.get("less", 0)
    if "signed_width" not in entry:
        return [Number(name, value, entry["doc"])]
    width = Number(entry["signed_width"], value.bit_length() + 1, f"bits of -{name}..{name}")
    return [Number(name, value, entry["doc"], signed=True), width]


def load(path: Path = SOURCE) -> GlmNumbers:
    """The numbers.

    Raises:
        GlmNumbersError: an entry is there twice, or has no value.
    """
    data = tomllib.loads(path.read_text())
    numbers = [number for entry in data["number"] for number in _numbers(entry)]
    names = [number.name for number in numbers]
    for name in names:
        if names.count(name) > 1:
            raise GlmNumbersError(f"number {name} is there twice")
    found = GlmNumbers(tuple(numbers), tuple(Loss(loss["name"], loss["doc"]) for loss in data["loss"]))
    if found["sigmoid_one"] != 1 << found["activation_fraction"]:
        raise GlmNumbersError("number sigmoid_one is not 1.0 with activation_fraction fraction bits")
    return found
