"""What callers give as numbers, or as several things in an order: which types are taken, and as what of Python's."""

from __future__ import annotations

import math
from collections import UserList, deque
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

from catchment.host.given_numbers import as_real, as_whole, is_real, is_whole, keep_whole
from catchment.host.given_several import in_order


class Name(str):
    """A text of a class of its own."""


@pytest.mark.parametrize(
    "number", [3, np.int8(3), np.uint64(3), np.array(3), torch.tensor(3), type("Rank", (int,), {})(3)]
)
def test_whole_numbers_of_any_type_are_ints(number: Any) -> None:
    assert as_whole(number) == 3 and type(as_whole(number)) is not bool and is_whole(number, 3, 3)


@pytest.mark.parametrize("number", [True, np.True_, torch.tensor(True), 3.0, np.float32(3), "3", None, [3], Decimal(3)])
def test_what_is_no_whole_number_is_none(number: Any) -> None:
    assert as_whole(number) is None and not is_whole(number, 0)


@pytest.mark.parametrize(
    "number", [0.5, np.float16(0.5), np.float64(0.5), np.array(0.5), torch.tensor(0.5), Fraction(1, 2), Decimal("0.5")]
)
def test_real_numbers_of_any_type_are_floats(number: Any) -> None:
    assert type(as_real(number)) is float and as_real(number) == 0.5 and is_real(number)


@pytest.mark.parametrize(
    "number",
    [True, np.True_, torch.tensor(True), math.nan, np.float32("nan"), "3", b"3", None, [], 1j, np.complex64(1),
     np.complex128(1 + 2j), torch.tensor(1j), torch.ones((), device="meta")],
)  # fmt: skip
def test_what_is_no_real_number_is_none(number: Any) -> None:
    assert as_real(number) is None and not is_real(number)


@pytest.mark.parametrize("number", [math.inf, pytest.param(10**400, id="10**400"), np.float32("inf"), Decimal("1e999")])
def test_what_is_beyond_all_floats_is_infinite(number: Any) -> None:
    assert as_real(number) == math.inf and as_real(-number) == -math.inf and not is_real(number)


def test_numbers_that_are_kept_are_ints() -> None:
    @dataclass(frozen=True, slots=True)
    class Options:
        bits: Any
        seed: Any

    options = Options(np.uint8(200), None)
    keep_whole(options, "bits", "seed")
    assert (options.bits + 100, type(options.bits), options.seed) == (300, int, None)


@pytest.mark.parametrize(
    "given",
    [[1, 2], (1, 2), range(1, 3), {1: 0, 2: 0}.keys(), {"a": 1, "b": 2}.values(), deque([1, 2]), UserList([1, 2]),
     np.array([1, 2]), torch.tensor([1, 2]), memoryview(b"\1\2"), (one for one in (1, 2)), map(int, "12")],
)  # fmt: skip
def test_whatever_has_an_order_is_taken(given: Any) -> None:
    assert in_order(given) == [1, 2]


@pytest.mark.parametrize(
    "given", [None, 5, "ab", Name("ab"), b"ab", bytearray(b"ab"), {1, 2}, frozenset((1, 2)), {1: 2}, np.array(1),
              torch.tensor(1)]
)  # fmt: skip
def test_what_has_no_order_is_none(given: Any) -> None:
    assert in_order(given) is None
