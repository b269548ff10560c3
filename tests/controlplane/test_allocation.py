"""What an allocator gives out, in which order, and what it says when nothing is left."""

from __future__ import annotations

from pathlib import Path

import pytest

from catchment.controlplane.jobs import Allocator, JobError
from catchment.controlplane.jobs.allocation import FIRST_PORT, FLOOD_GROUP, JOB_ROWS, MAX_GROUP, Share
from catchment.controlplane.jobs.generations import MAX_GENERATION, GenerationOrder
from catchment.controlplane.topology import star
from catchment.wire.generated.constants import UDP_PORTS

SLOTS = 64
STAR = star(["w0"], program=Path("luwu.p4"), slots=SLOTS)
ORDER = GenerationOrder(7)


@pytest.fixture
def allocator() -> Allocator:
    return Allocator(STAR, order=ORDER)


@pytest.mark.parametrize("first", [1, 2, 1000, MAX_GENERATION - 3, MAX_GENERATION])
def test_the_next_generations_are_those_that_are_given_out(first: int) -> None:
    allocator = Allocator(STAR, order=ORDER, next_generation=first)
    told = allocator.next_ones(6)
    assert [allocator.generation() for _ in range(6)] == told


def test_generations_begin_at_the_first_place_of_their_order(allocator: Allocator) -> None:
    assert allocator.next_ones(3) == [ORDER.at(1), ORDER.at(2), ORDER.at(3)]
    assert allocator.generation() == ORDER.at(1)


@pytest.mark.parametrize("first", [1, 77, MAX_GENERATION - 3, MAX_GENERATION])
@pytest.mark.parametrize("count", [0, 1, 5])
def test_generations_that_are_passed_over_are_not_given_out(first: int, count: int) -> None:
    allocator = Allocator(STAR, order=ORDER, next_generation=first, clean=100)
    following = allocator.next_ones(count + 1)[-1]
    allocator.pass_over(count)
    assert 1 <= allocator.next_generation <= MAX_GENERATION
    assert allocator.clean == 100 - count
    assert allocator.generation() == following


def test_more_are_passed_over_than_are_clean() -> None:
    allocator = Allocator(STAR, order=ORDER, clean=3)
    allocator.pass_over(5)
    assert allocator.clean == 0


def test_a_generation_in_use_is_left_out() -> None:
    allocator = Allocator(STAR, order=ORDER, used_generations=[ORDER.at(1), ORDER.at(3)])
    assert [allocator.generation(), allocator.generation()] == [ORDER.at(2), ORDER.at(4)]
    allocator.release_generation(ORDER.at(3))
    allocator.next_generation = 3
    assert allocator.generation() == ORDER.at(3)


@pytest.mark.parametrize("next_generation", [5, 60_000])
def test_one_that_was_in_use_while_registers_were_scrubbed_is_not_given_out_before_they_are_again(
    next_generation: int,
) -> None:
    """Scrubbing leaves what living jobs have in the registers, and it stays there when they have gone."""
    old = ORDER.at(50_000)
    allocator = Allocator(STAR, order=ORDER, next_generation=next_generation, used_generations=[old])
    assert allocator.clean == MAX_GENERATION
    allocator.release_generation(old)
    assert allocator.clean == (50_000 - next_generation) % MAX_GENERATION
    allocator.pass_over(allocator.clean - 1)
    assert allocator.generation() == ORDER.at(49_999)
    with pytest.raises(JobError, match="scrub them first"):
        allocator.generation()


def test_one_that_was_given_out_since_registers_were_scrubbed_changes_nothing_when_it_goes() -> None:
    allocator = Allocator(STAR, order=ORDER, next_generation=MAX_GENERATION - 1)
    given = [allocator.generation() for _ in range(5)]
    allocator.release_generation(given[1])
    assert allocator.clean == MAX_GENERATION - 5


def test_registers_must_be_scrubbed_when_no_clean_generation_is_left() -> None:
    allocator = Allocator(STAR, order=ORDER, clean=2)
    allocator.generation()
    allocator.generation()
    with pytest.raises(JobError, match="scrub them first"):
        allocator.generation()


@pytest.mark.parametrize("clean", [0, MAX_GENERATION])
def test_all_generations_may_be_in_use(clean: int) -> None:
    allocator = Allocator(STAR, order=ORDER, used_generations=range(1, MAX_GENERATION + 1), clean=clean)
    with pytest.raises(JobError, match=r"every generation is in use; remove jobs"):
        allocator.generation()


def test_slots_rows_and_groups_are_given_from_below(allocator: Allocator) -> None:
    first, second, third = allocator.share("s1", 4), allocator.share("s1", 8), allocator.share("s1", 4)
    assert [first, second, third] == [
        Share("s1", 0, 4, 0, FLOOD_GROUP + 1),
        Share("s1", 8, 8, 1, FLOOD_GROUP + 2),
        Share("s1", 4, 4, 2, FLOOD_GROUP + 3),
    ]
    assert allocator.load("s1") == (3, 16)


def test_a_share_that_adds_nothing_up_has_a_row_and_no_slots(allocator: Allocator) -> None:
    share = allocator.share("s1", 0, group=9)
    assert share == Share("s1", 0, 0, 0, 9)
    assert allocator.load("s1") == (1, 0)
    allocator.release(share)
    assert allocator.load("s1") == (0, 0)


def test_what_is_released_is_given_out_again(allocator: Allocator) -> None:
    shares = [allocator.share("s1", 16) for _ in range(3)]
    allocator.release(shares[1])
    assert allocator.load("s1") == (2, 32)
    assert allocator.share("s1", 16) == shares[1]


def test_the_whole_switch_can_be_one_share(allocator: Allocator) -> None:
    assert allocator.share("s1", SLOTS).slots == SLOTS
    with pytest.raises(JobError, match=f"s1 has no 1 slots in a row: {SLOTS} of {SLOTS} are in use"):
        allocator.share("s1", 1)


def test_a_switch_has_as_many_streams_as_rows(allocator: Allocator) -> None:
    assert [allocator.share("s1", 0).row for _ in range(JOB_ROWS)] == list(range(JOB_ROWS))
    with pytest.raises(JobError, match=f"holds {JOB_ROWS} streams"):
        allocator.share("s1", 0)


def test_the_last_multicast_group_is_given_out() -> None:
    held = [Share("s1", 0, 0, 0, group) for group in range(FLOOD_GROUP + 1, MAX_GROUP)]
    assert Allocator(STAR, held).share("s1", 0).group == MAX_GROUP


def test_shares_that_are_held_are_not_given_out() -> None:
    held = [Share("s1", 8, 8, 1, 3), Share("s1", 0, 4, 0, 2)]
    assert Allocator(STAR, held).share("s1", 4) == Share("s1", 4, 4, 2, 4)


def test_a_share_of_a_switch_that_is_gone_is_refused() -> None:
    with pytest.raises(JobError, match="switch s9, which the topology no longer has"):
        Allocator(STAR, [Share("s9", 0, 4, 0, 2)])


def test_ports_of_a_host_are_given_from_below(allocator: Allocator) -> None:
    ports = [allocator.port("w0") for _ in range(UDP_PORTS)]
    assert ports == list(range(FIRST_PORT, FIRST_PORT + UDP_PORTS))
    with pytest.raises(JobError, match=f"w0 is in {UDP_PORTS} jobs"):
        allocator.port("w0")
    assert allocator.port("w1") == FIRST_PORT
    allocator.release_port("w0", ports[4])
    assert allocator.port("w0") == ports[4]


def test_a_port_that_is_held_is_not_given_out(allocator: Allocator) -> None:
    allocator.hold_port("w0", FIRST_PORT)
    assert allocator.port("w0") == FIRST_PORT + 1
