"""The processes of ranks that a bench gives orders to: each gets its own, and one that ends is named."""

from __future__ import annotations

import json

import pytest

from bench.rank_processes import RankProcesses

ECHO = 'echo ready; while read -r order; do echo "$0 $order"; done'


def place(rank: int, script: str = ECHO) -> list[str]:
    """A shell in the place of a rank, to which the rank's own command is only an argument."""
    return ["sh", "-c", script, str(rank)]


def test_each_rank_gets_its_own_order() -> None:
    ranks = RankProcesses("none", [[]] * 3, [place(rank) for rank in range(3)])
    try:
        for orders in ([{"a": 1}, [2], "3"], [True, False, None]):
            assert ranks.run(orders) == [f"{rank} {json.dumps(order)}\n" for rank, order in enumerate(orders)]
    finally:
        ranks.close()


def test_a_rank_that_does_not_start_is_named() -> None:
    with pytest.raises(SystemExit, match="rank 1 failed"):
        RankProcesses("none", [[]] * 2, [place(0), place(1, "exit 1")])


def test_a_rank_that_ends_before_it_answers_is_named() -> None:
    ranks = RankProcesses("none", [[]] * 2, [place(0), place(1, "echo ready; read -r order")])
    try:
        with pytest.raises(SystemExit, match="rank 1 failed"):
            ranks.run([1, 2])
    finally:
        ranks.close()
