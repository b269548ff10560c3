"""The rows of `make bench-performance`: what is right is green, and each planted bug turns one red."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from bench.performance import print_rows, red_rows, write_rows
from bench.performance_modes import flow_rows, train_rows
from bench.performance_plants import PLANTS, PLANTS_IN_FLOW
from bench.performance_points import Played, Point
from bench.performance_rows import CALM, LONG, LOSSES, Row, rows
from bench.performance_simulated import play_simulated
from catchment.sim.performance.cluster import Cluster
from catchment.sim.performance.rounds import Rounds
from catchment.sim.performance.run import Outcome, simulate_in_trains

Plant = Callable[[], AbstractContextManager[object]]


@cache
def truth() -> dict[Point, Played]:
    """What the simulator gives without a bug, in the place of the co-simulation's."""
    points = [Point((2,), 1024), *(Point((2,), size) for size in LONG), Point((4, 4), 1 << 15)]
    return {point: play_simulated(point) for point in (*points, *(replace(CALM, lost=one) for one in LOSSES.values()))}


def test_what_is_equal_holds_and_every_kind_of_row_is_there() -> None:
    judged = rows(truth(), play_simulated)
    assert all(row.holds for row in judged)
    for what in ("gradients, ns", "PARAM frames", "goodput of gradients, Gb/s", "heartbeats", "lost: a sum"):
        assert any(what in row.what for row in judged), what


def test_rows_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.performance.RESULTS", tmp_path)
    judged = rows(truth(), play_simulated)
    write_rows(judged)
    told = json.loads((tmp_path / "performance-rows.json").read_text("utf-8"))
    assert [(row["what"], row["bound"], row["holds"]) for row in told] == [
        (row.what, row.bound, True) for row in judged
    ]


def test_rows_are_printed_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows([Row("rack [a] of [/b], :star:", 1.0, 1.0, 0.0)])
    assert "rack [a] of [/b], :star:" in capsys.readouterr().out


def test_bounds_are_those_that_the_page_promises() -> None:
    bounds = {row.what: row.bound / row.expected for row in rows(truth(), play_simulated) if "lost" not in row.what}
    for what, bound in bounds.items():
        expected = {"ns": 0.05 if " 1024 B in" in what or " 32768 B in" in what else 0.02, "Gb/s": 0.005, "frames": 0.0}
        if not what.endswith("heartbeats"):
            unit = what.rsplit(" ", 1)[-1]
            assert bound == pytest.approx(expected[unit]), what


@pytest.mark.parametrize("plant", PLANTS.values(), ids=list(PLANTS))
def test_a_planted_bug_turns_a_row_red(plant: Plant) -> None:
    assert not red_rows(truth())
    with plant():
        assert red_rows(truth())


@pytest.mark.sampled(4)
def test_modes_agree_and_a_picosecond_is_seen(rng: random.Random) -> None:
    seed = rng.randrange(1 << 30)
    assert all(row.holds for row in train_rows(seed))

    def late(kind: str, cluster: Cluster, rounds: Rounds) -> Outcome:
        outcome = simulate_in_trains(kind, cluster, rounds)
        return replace(outcome, rounds=(outcome.rounds[0] + 1e-12, *outcome.rounds[1:]))

    assert not any(row.holds for row in train_rows(seed, late))


def test_flow_mode_is_within_its_bound_and_a_bug_in_it_is_seen() -> None:
    assert all(row.holds for row in flow_rows(1))
    for plant in PLANTS_IN_FLOW.values():
        with plant():
            assert not all(row.holds for row in flow_rows(1))
