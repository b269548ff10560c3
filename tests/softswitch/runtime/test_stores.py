"""Action profiles, multicast groups and clone sessions: what clients are told and frames see when memory ends."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from table_parts import every_end, tables

LONG = "metadata that is longer than what a string has room for in itself"


class Watched:
    """A profile of ten members, of which group 1 has five, and what it looks like from outside."""

    def __init__(self) -> None:
        self.profile = tables.Profile()
        for member in range(1, 11):
            self.profile.insert_member(member, 100 + member)
        self.profile.insert_group(1, [(member, 2 * member - 1) for member in range(1, 6)])

    def seen(self) -> list[Any]:
        """All that a client is told, and a frame finds."""
        profile = self.profile
        groups = profile.groups()
        values = {member: profile.value(member) for member, _ in profile.members()}
        return [profile.members(), values, groups, {group: profile.choices(group) for group, _ in groups}]

    def every_end(self, work: Callable[[int], bool]) -> int:
        """Let memory end at each allocation of some work, after which all is as before; how many there are."""
        before = [*self.seen(), self.profile.state_bytes()]

        def is_as_before() -> None:
            assert [*self.seen(), self.profile.state_bytes()] == before

        return every_end(work, is_as_before)


def test_a_member_is_there_as_a_whole_or_not_at_all() -> None:
    watched = Watched()
    assert watched.every_end(lambda left: bool(watched.profile.insert_member(11, 7, wide=True, allocations=left))) > 5
    assert (11, 7) in watched.profile.members()


@pytest.mark.parametrize("wide", [False, True])
def test_a_member_is_changed_as_a_whole_or_not_at_all(wide: bool) -> None:
    """One that takes more memory than before, too; groups find its new value."""
    watched = Watched()
    assert watched.every_end(lambda left: bool(watched.profile.modify_member(3, 7, wide=wide, allocations=left))) > 4
    assert watched.profile.value(3) == 7
    assert watched.profile.choices(1).count(7) == 5
    assert (3, 7) in watched.profile.members()


def test_a_group_that_was_not_made_uses_no_members() -> None:
    watched = Watched()
    members = [(member, 1) for member in range(6, 11)]
    assert watched.every_end(lambda left: bool(watched.profile.insert_group(2, members, left))) > 5
    assert watched.profile.choices(2) == [106, 107, 108, 109, 110]
    watched.profile.remove_group(2)
    for member, _ in members:
        watched.profile.remove_member(member)


def test_a_group_that_was_not_changed_uses_the_members_that_it_had() -> None:
    watched = Watched()
    members = [(member, 7 * member) for member in range(5, 11)]
    assert watched.every_end(lambda left: bool(watched.profile.modify_group(1, members, left))) > 5
    for member in range(1, 5):
        watched.profile.remove_member(member)
    with pytest.raises(ValueError, match="member 5 of profile is still in use"):
        watched.profile.remove_member(5)
    watched.profile.modify_group(1, [])
    for member, _ in members:
        watched.profile.remove_member(member)


def test_ports_go_down_for_all_groups_or_for_none() -> None:
    """A group of equal weights has a choice for each member that is up."""
    watched = Watched()
    watched.profile.insert_group(2, [(member, 1) for member in range(1, 11)])
    assert watched.every_end(lambda left: bool(watched.profile.set_down([1, 3], left))) > 5
    assert watched.profile.choices(2) == [102, 104, 105, 106, 107, 108, 109, 110]
    assert set(watched.profile.choices(1)) == {102, 104, 105}
    assert watched.every_end(lambda left: bool(watched.profile.set_down([], left))) > 5
    assert watched.profile.choices(1).count(103) == 5


Copies = list[tuple[int, int]]


class Copied:
    """Groups and sessions 1 and 2, and what they look like from outside."""

    def __init__(self) -> None:
        self.store = tables.Replication()
        for number in (1, 2):
            self.store.write_group(True, number, [(port, number) for port in range(3)], LONG)
            self.store.write_session(True, number, [(port, number) for port in range(3)], 60)

    def seen(self) -> list[Any]:
        store = self.store
        copies = [(store.group_copies(number), store.session_copies(number)) for number in range(6)]
        return [store.groups(), store.sessions(), copies, store.state_bytes()]

    def every_end(self, work: Callable[[int], bool]) -> int:
        before = self.seen()

        def is_as_before() -> None:
            assert self.seen() == before

        return every_end(work, is_as_before)


@pytest.mark.parametrize("copies", [0, 1, 40])
@pytest.mark.parametrize("fresh", [True, False], ids=["new", "changed"])
def test_a_multicast_group_is_written_as_a_whole_or_not_at_all(fresh: bool, copies: int, rng: random.Random) -> None:
    copied, number = Copied(), 3 if fresh else 1
    wanted = [(port, rng.randrange(1 << 16)) for port in range(copies)]
    told = LONG * 2
    copied.every_end(lambda left: bool(copied.store.write_group(fresh, number, wanted, told, left)))
    assert (number, wanted, told) in copied.store.groups()
    assert copied.store.group_copies(number) == wanted
    copied.store.remove_group(number)
    assert copied.store.group_copies(number) == []


@pytest.mark.parametrize("copies", [0, 1, 40])
@pytest.mark.parametrize("fresh", [True, False], ids=["new", "changed"])
def test_a_clone_session_is_written_as_a_whole_or_not_at_all(fresh: bool, copies: int, rng: random.Random) -> None:
    copied, number = Copied(), 3 if fresh else 1
    wanted = [(port, rng.randrange(1 << 16)) for port in range(copies)]
    copied.every_end(lambda left: bool(copied.store.write_session(fresh, number, wanted, 64, left)))
    assert (number, wanted, 64) in copied.store.sessions()
    assert copied.store.session_copies(number) == (True, wanted, 64)
    copied.store.remove_session(number)
    assert copied.store.session_copies(number) == (False, [], 0)


def test_what_was_not_written_can_be_written_again() -> None:
    copied = Copied()
    assert not copied.store.write_group(True, 4, [(1, 1)], LONG, 1)
    assert copied.store.write_group(True, 4, [(1, 1)], LONG)
    with pytest.raises(ValueError, match="multicast group 4 exists already"):
        copied.store.write_group(True, 4, [(1, 1)], LONG)
