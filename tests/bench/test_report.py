"""The benchmark report: ratios, and the same figures for scripts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.report import Figure, publish, rate


def test_table_and_json_hold_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    path = publish("bench-x", [Figure("copy", 30.0, "GB/s", "memcpy", 40.0, goal=0.8)], ["a note"])
    document = json.loads(path.read_text())
    assert document["figures"][0]["ratio"] == pytest.approx(0.75)
    assert document["notes"] == ["a note"]
    printed = capsys.readouterr().out
    assert "0.75" in printed
    assert "0.80" in printed
    assert document["figures"][0]["met"] is False and " no " in printed


def test_brackets_and_colons_are_printed_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What would be markup: a tag that is not opened even ends the run, before its figures are written."""
    monkeypatch.chdir(tmp_path)
    figure = Figure("copy [bold]", 30.0, "GB/s", "[red]memcpy", 40.0)
    publish("bench-x", [figure], ["to [/dev/shm] of :star:, rank [a]"])
    printed = capsys.readouterr().out
    assert "copy [bold]" in printed and "[red]memcpy" in printed
    assert "to [/dev/shm] of :star:, rank [a]" in printed


def test_a_goal_is_met_or_not_or_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    figures = [Figure(str(goal), 3.0, "x", "a peer", 4.0, goal) for goal in (0.75, 0.76, None)]
    document = json.loads(publish("bench-x", figures).read_text())
    assert [figure["met"] for figure in document["figures"]] == [True, False, None]
    assert " yes " in capsys.readouterr().out


@pytest.mark.parametrize("unit", ["s", "us", "clocks/packet", "B"])
def test_a_goal_of_times_and_bytes_is_a_ceiling(unit: str) -> None:
    assert [Figure("own", 3.0, unit, "a peer", 4.0, goal).met for goal in (0.76, 0.75, 0.74)] == [True, True, False]


def test_rate_counts_the_units_that_work_reports() -> None:
    calls = []
    assert rate(lambda: calls.append(1) or 1000, seconds=0.01, rounds=1) > 1000 * (len(calls) - 1) / 10
