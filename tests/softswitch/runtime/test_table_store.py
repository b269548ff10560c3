"""One table of the data plane: which of equal entries wins, and what is left of it when memory ends."""

from __future__ import annotations

import random

import pytest
from table_parts import every_end, tables

ALL = (1 << 64) - 1
HIGH = 0xFF << 56
"""Two masks that the keys below match with."""


def test_the_older_of_equal_entries_wins_after_any_number_of_insertions(rng: random.Random) -> None:
    """The insertions before are said to have been; around 2^32 of them entries are numbered anew."""
    table = tables.Table(sequence=tables.SEQUENCES - 20)
    there: list[tuple[int, int, int, int]] = []  # in order: key, mask, priority, value
    for value in range(60):
        mask = rng.choice((ALL, HIGH, HIGH | 0xFF, 0))
        key, priority = 0x1200_0000_0000_0034 & mask, rng.randrange(1, 4)
        if all(entry[:3] != (key, mask, priority) for entry in there):
            table.insert(key, mask, priority, value)
            there.append((key, mask, priority, value))
        if len(there) > 6:
            key, mask, priority, _ = there.pop(rng.randrange(len(there)))
            table.remove(key, mask, priority)
        first = max(there, key=lambda entry: entry[2])  # the first of the greatest
        assert table.find(0x1200_0000_0000_0034) == first[3]
    assert table.entries() == len(there)


def test_entries_that_are_numbered_anew_are_found_whatever_comes_next() -> None:
    table = tables.Table(sequence=tables.SEQUENCES - 2)
    table.insert(0, 0, 7, 1)
    table.insert(HIGH, HIGH, 7, 2)
    assert table.find(HIGH) == 1
    table.insert(5, ALL, 9, 3)
    assert (table.find(HIGH), table.find(5)) == (1, 3)
    table.remove(0, 0, 7)
    assert (table.find(HIGH), table.find(4)) == (2, None)


@pytest.mark.parametrize("exact", [True, False], ids=["exact", "ternary"])
def test_a_table_is_as_before_when_memory_ends_while_it_grows(exact: bool) -> None:
    table = tables.Table(exact=exact)
    priority = 0 if exact else 1
    masks = [ALL] if exact else [ALL, HIGH | 0xFF, HIGH | 0xF]
    values: dict[tuple[int, int], int] = {}

    def is_as_before() -> None:
        assert table.entries() == len(values)
        assert table.state_bytes() == before
        for (key, _), value in values.items():
            assert table.find(key) == value

    fails = 0
    for value in range(30):  # hashes grow three times meanwhile
        mask = masks[value % len(masks)]
        key = (value + 1 << 56 | value % 15 + 1) & mask
        before = table.state_bytes()

        def insert(allocations: int, key: int = key, mask: int = mask, value: int = value) -> bool:
            return bool(table.insert(key, mask, priority, value, allocations))

        fails += every_end(insert, is_as_before)
        values[key, mask] = value
        before = table.state_bytes()
        is_as_before()
    assert fails > 30 * 5


def test_an_entry_stays_when_memory_ends_while_it_is_removed() -> None:
    table = tables.Table()
    table.insert(HIGH, HIGH, 1, 5)

    def is_as_before() -> None:
        assert (table.entries(), table.find(HIGH)) == (1, 5)

    every_end(lambda allocations: bool(table.remove(HIGH, HIGH, 1, allocations)), is_as_before)
    assert (table.entries(), table.find(HIGH)) == (0, None)


def test_the_members_of_a_set_stay_when_memory_ends_before_all_new_ones_are_there() -> None:
    table = tables.Table(exact=True)
    old, new = list(range(10)), list(range(5, 40))
    table.replace(old)

    def is_as_before() -> None:
        assert [key for key in range(50) if table.has(key)] == old

    assert every_end(lambda allocations: bool(table.replace(new, allocations)), is_as_before) > len(new)
    assert [key for key in range(50) if table.has(key)] == new


def test_entries_numbered_anew_are_as_before_when_memory_ends() -> None:
    """The entry for all keys is younger than one with the other's mask, and older than the next with it."""
    table = tables.Table(sequence=tables.SEQUENCES - 3)
    one, another = 1 << 56, 2 << 56
    for value, (key, mask) in enumerate([(one, HIGH), (0, 0), (another, HIGH)]):
        table.insert(key, mask, 7, value)

    def is_as_before() -> None:
        assert [table.find(key) for key in (one, another, 0)] == [0, 1, 1]

    every_end(lambda allocations: bool(table.insert(3, 0xFF, 7, 3, allocations)), is_as_before)
    is_as_before()
    table.remove(0, 0, 7)
    assert [table.find(key) for key in (one, another, 3)] == [0, 2, 3]
