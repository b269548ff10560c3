"""`catchment rails show`, `doctor` and `stats` on a job on several rails: what its ranks say, and who says nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from fake_program import fake_p4info
from fake_switch import FakeSwitch, RunningFake

from catchment.host.collectives.rail_status import RailStatus
from catchment.wire.rail_report import RailReport, RankReport, SplitReport

Call = Callable[..., str]

TOPOLOGY = """\
name: lab
switches:
  s1: {{program: luwu.p4, ip: 10.1.0.254, mac: 02:00:00:01:fe:01, grpc: {a}}}
  s2: {{program: luwu.p4, ip: 10.2.0.254, mac: 02:00:00:02:fe:01, grpc: {b}}}
hosts:
  w0:
    - {{ip: 10.1.0.1/24, mac: 02:00:00:01:00:01, link: s1:1}}
    - {{ip: 10.2.0.1/24, mac: 02:00:00:02:00:01, link: s2:1}}
  w1:
    - {{ip: 10.1.0.2/24, mac: 02:00:00:01:00:02, link: s1:2}}
    - {{ip: 10.2.0.2/24, mac: 02:00:00:02:00:02, link: s2:2}}
rails:
  a: [s1]
  b: [s2]
rings:
  t: {{over: b}}
"""


@pytest.fixture
def job(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, int]]:
    """A job on both rails of a network of two switches in memory; the generation of its sums on each."""
    for name in ("STATE_DIR", "RUN_DIR"):
        monkeypatch.setenv(f"CATCHMENT_{name}", str(tmp_path / name))
    monkeypatch.setenv("CATCHMENT_TIMEOUT", "60")
    with ExitStack() as exits:
        fakes = [exits.enter_context(RunningFake(FakeSwitch(p4info=fake_p4info()))) for _ in range(2)]
        path = tmp_path / "lab.yaml"
        path.write_text(TOPOLOGY.format(a=fakes[0].address, b=fakes[1].address))
        monkeypatch.setenv("CATCHMENT_TOPOLOGY", str(path))
        words = ("--kind", "allreduce", "--workers", "w0,w1", "--json")
        made = json.loads(call("job", "create", "sums", "--rails", "a,b", *words))
        call("job", "create", "alone", "--rail", "b", *words)
        yield {rail: made["parts"][rail]["generations"]["sums"] for rail in "ab"}


def report(job: dict[str, int], rank: int = 0, state: str = "up") -> RankReport:
    """What a rank would say; b carries a quarter, or nothing any more."""
    rails = (
        RailReport("a", job["a"], "up", True, "a", 1e-4, 400_000_000, 0, 7, 3 << 20, 0, 0.0),
        RailReport(
            "b", job["b"], state, True, "b" if state == "up" else "a", 2e-4, 100_000_000, 10**8, 6, 1 << 20, 2, 0.0716
        ),
    )
    return RankReport(
        "sums",
        rank,
        1,
        "waterfill",
        4,
        rails,
        (SplitReport(1 << 20, (3 << 18, 1 << 18), (5e-5, 6e-5), (300_000_000, 90_000_000)),),
    )


def test_show_says_what_the_ranks_have_agreed(call: Call, job: dict[str, int]) -> None:
    with ExitStack() as exits:
        for rank in (1, 0):
            exits.callback(RailStatus(lambda rank=rank: lambda: report(job, rank, "down")).close)
        old = replace(report(job), rails=tuple(replace(r, generation=0) for r in report(job).rails))
        exits.callback(RailStatus(lambda: lambda: old).close)
        said = call("rails", "show", "sums")
        assert "job sums: rails as rank 0 says, policy waterfill, table 4" in said
        (row,) = [line.split() for line in said.splitlines() if " down " in line]
        cells = [cell for cell in row if cell != "│"]
        assert cells == ["b", "s2", "down", "a", "200", "100", "100", "25.0%", "2", "72", "ms"]
        assert "1024 KiB" in said and "75.0%" in said
        (row,) = [line for line in said.splitlines() if "90 Mb/s" in line]
        assert "1024 KiB" in row and "50 us, 300 Mb/s" in row and "60 us, 90 Mb/s" in row
        found = json.loads(call("rails", "show", "sums", "--json"))
    assert found["rails"] == [
        {"name": "a", "switches": ["s1"], "ring": None},
        {"name": "b", "switches": ["s2"], "ring": None},
    ]
    assert [rank["rank"] for rank in found["ranks"]] == [0, 1], "the older generation is not this job"
    assert found["ranks"][0]["rails"][1]["last_incident"] == 0.0716


def test_a_ring_is_a_rail_to_every_verb(call: Call, job: dict[str, int]) -> None:
    words = ("--kind", "allreduce", "--workers", "w0,w1", "--json")
    made = json.loads(call("job", "create", "mixed", "--rails", "a,t", *words))
    assert made["parts"]["t"]["ring"] == "tcp" and made["members"]["w1"]["parts"]["t"]["ring"] == "tcp"
    shown = " ".join(call("job", "show", "mixed").split())
    assert "a ring of tcp" in shown and "10.2.0.1" in shown
    assert "tcp" in call("rails", "show", "mixed"), "planned, and no rank runs"
    gens = {rail: made["parts"][rail]["generations"]["sums"] for rail in "at"}
    said = report({"a": gens["a"], "b": gens["t"]}, 0, "down")
    ring = replace(said.rails[1], name="t")
    status = RailStatus(lambda: lambda: replace(said, job="mixed", rails=(said.rails[0], ring)))
    try:
        (row,) = [line.split() for line in call("rails", "show", "mixed").splitlines() if " down " in line]
        assert [cell for cell in row if cell != "│"][:5] == ["t", "tcp", "s2", "down", "a"]
        found = json.loads(call("doctor", "mixed", "--seconds", "0.05", "--json", code=3))["mixed"]
        (rail,) = [finding for finding in found if finding["what"].startswith("rail ")]
        assert rail["subject"] == "s2" and "rail t of job mixed is down" in rail["what"]
        switches = {one["switch"]: one["rails"] for one in json.loads(call("stats", "--json"))}
        assert [(use["job"], use["report"]["name"]) for use in switches["s2"]] == [("mixed", "t")]
    finally:
        status.close()
    call("job", "remove", "mixed")


def test_a_job_of_rings_alone_is_refused(call: Call, job: dict[str, int]) -> None:
    words = ("--kind", "allreduce", "--workers", "w0,w1")
    said = " ".join(call("job", "create", "round", "--rails", "t", *words, code=1).split())
    assert "t is a ring of tcp; give a rail with a switch besides: --rails A,t" in said


def test_without_a_rank_here_it_says_so(call: Call, job: dict[str, int]) -> None:
    said = call("rails", "show", "sums")
    assert "no rank of job sums runs on this machine" in said and "s2" in said
    assert json.loads(call("rails", "show", "sums", "--json"))["ranks"] == []
    assert "job alone is on rail b alone" in call("rails", "show", "alone", code=1)
    assert "no job 'nothing'" in call("rails", "show", "nothing", code=1)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("down", "rail b of job sums is down, says rank 0: its operations go over rail a; it was found broken 2 times, "
         "the last time within 72 ms"),
        ("probation", "rail b of job sums answers again and is on probation, says rank 0"),
    ],
)  # fmt: skip
def test_doctor_and_stats_name_a_rail_that_is_not_used(call: Call, job: dict[str, int], state: str, said: str) -> None:
    status = RailStatus(lambda: lambda: report(job, 0, state))
    try:
        found = json.loads(call("doctor", "sums", "--seconds", "0.05", "--json", code=3))["sums"]
        (rail,) = [finding for finding in found if finding["what"].startswith("rail ")]
        assert rail["what"] == said and rail["subject"] == "s2" and rail["certain"] is (state == "down")
        assert " ".join(said.split()) in " ".join(call("doctor", "sums", "--seconds", "0.05", code=3).split())
        switches = {one["switch"]: one["rails"] for one in json.loads(call("stats", "--json"))}
        assert [use["report"]["state"] for use in switches["s2"]] == [state]
        assert [(use["job"], use["share"]) for use in switches["s1"]] == [("sums", 0.75)]
        (row,) = [line for line in call("stats", "s2").splitlines() if state in line]
        assert "sums" in row and "25.0%" in row
    finally:
        status.close()
