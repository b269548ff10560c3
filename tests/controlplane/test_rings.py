"""Rings of TCP connections as rails: read from the topology file, planned beside rails with switches, and described."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from running_controller import RunningController, use_fake_programs
from typer.testing import CliRunner

from catchment.checkout import ROOT
from catchment.cli import app
from catchment.controlplane.errors import ControlPlaneError
from catchment.controlplane.jobs import Allocator, JobError, JobGroup, JobRequest
from catchment.controlplane.jobs.entries import switch_configs
from catchment.controlplane.topology import Ring, Topology, TopologyError
from catchment.host.collectives.rail_parts import rails_of

GOOD = """\
switches:
  a1: {program: luwu.p4, ip: 10.1.0.254, mac: 02:00:00:01:fe:01, lanes: 256}
  b1: {program: luwu.p4, ip: 10.2.0.254, mac: 02:00:00:02:fe:01}
hosts:
  w0:
    - {ip: 10.1.0.1/24, mac: 02:00:00:01:00:01, link: a1:1}
    - {ip: 10.2.0.1/24, mac: 02:00:00:02:00:01, link: b1:1, rate: 100mbit}
  w1:
    - {ip: 10.1.0.2/24, mac: 02:00:00:01:00:02, link: a1:2}
    - {ip: 10.2.0.2/24, mac: 02:00:00:02:00:02, link: b1:2, rate: 100mbit}
  w2:
    - {ip: 10.1.0.3/24, mac: 02:00:00:01:00:03, link: a1:3}
    - {ip: 10.2.0.3/24, mac: 02:00:00:02:00:03, link: b1:3, rate: 100mbit}
  odd: {ip: 10.1.0.4/24, mac: 02:00:00:01:00:04, link: a1:4}
rails:
  a: [a1]
  b: [b1]
rings:
  t: {over: b}
  m: {over: a, transport: mptcp}
"""
WORKERS = ("w0", "w1", "w2")


def load(tmp_path: Path, text: str = GOOD) -> Topology:
    path = tmp_path / "net.yaml"
    path.write_text(text.replace("luwu.p4", str(ROOT / "p4src" / "luwu.p4")))
    return Topology.load(path)


@pytest.fixture
def topology(tmp_path: Path) -> Topology:
    """Two rails and a ring over each."""
    return load(tmp_path)


def planned(topology: Topology, *rails: str, **asked: Any) -> JobGroup:
    allocator = asked.pop("allocator", None) or Allocator(topology)
    request = JobRequest("sums", **{"kind": "allreduce", "workers": WORKERS, "slots": 32, "rails": rails, **asked})
    return request.plan(topology, allocator)


def test_rings_are_read(topology: Topology) -> None:
    assert topology.rings == {"t": Ring("b"), "m": Ring("a", "mptcp")}
    assert topology.plane("b").rings == {"t": Ring("b")}
    assert list(topology.rails) == ["a", "b"]


@pytest.mark.parametrize(
    ("old", "new", "line", "complaint"),
    [
        (
            "t: {over: b}",
            "t: {over: c}",
            19,
            "rings.t.over: no rail 'c', whose NICs the ring is to use; there are: a, b",
        ),
        ("t: {over: b}", "a: {over: b}", 19, "rings.a: there is a rail a already"),
        ("t: {over: b}", "t: {over: b, transport: udp}", 19, "rings.t.transport: udp"),
        ("t: {over: b}", "t: {over: b, rate: 1gbit}", 19, "rings.t.rate is unknown"),
        ("t: {over: b}", "'t t': {over: b}", 19, "'t t' cannot be the name of a ring"),
        ("t: {over: b}", "t: b", 19, "`rings.t` must be a mapping"),
        ("t: {over: b}", "t: {}", 19, "over"),
    ],
)
def test_mistakes_name_file_and_line(tmp_path: Path, old: str, new: str, line: int, complaint: str) -> None:
    with pytest.raises(TopologyError) as info:
        load(tmp_path, GOOD.replace(old, new, 1))
    assert str(info.value).startswith(f"{tmp_path}/net.yaml:{line}: "), info.value
    assert complaint in str(info.value)


def test_a_ring_beside_a_switch_rail_is_planned_and_described(topology: Topology) -> None:
    allocator = Allocator(topology)
    allocator.port("w1")  # so that hosts' ports differ
    group = planned(topology, "a", "t", allocator=allocator)
    assert list(group.parts) == ["a", "t", "a.control", "a.for.t", "t.control", "t.for.a"]
    assert group.rails == ("a", "t") and group.switches == ("a1",)
    parts = [group.describe(worker)["parts"] for worker in WORKERS]
    for label in ("t", "t.control", "t.for.a"):
        around = [own[label] for own in parts]
        assert all("switch" not in one and one["ring"] == "tcp" and one["rail"] == "t" for one in around)
        assert [one["local"][0] for one in around] == ["10.2.0.1", "10.2.0.2", "10.2.0.3"]
        assert [one["next"] for one in around] == [one["local"] for one in (*around[1:], around[0])]
        assert {one["rate"] for one in around} == {100_000_000}
        assert [one["wid"] for one in around] == [0, 1, 2]
        assert group.parts[label].carriers == ("b1",)
    sums = [own["sums"] for own in parts[0].values()]
    assert {one["lanes"] for one in sums} == {256}, "a ring has the lanes of the switches beside it"
    assert [one["slots"] for one in sums] == [32, 32, 8, 32, 8, 32]
    assert len({one["gen"] for one in sums}) == len(sums)
    assert len({tuple(own["local"]) for own in parts[0].values()}) == len(sums)
    rails = rails_of(parts[1])
    assert [(rail.name, rail.ring, rail.switch) for rail in rails] == [
        ("a", "", ("10.1.0.254", parts[1]["a"]["switch"][1])),
        ("t", "tcp", tuple(parts[1]["t"]["next"])),
    ]
    assert set(rails[0].spares) == {"t"} and set(rails[1].spares) == {"a"}
    assert rails[1].control is not None


def test_a_ring_takes_nothing_of_any_switch_and_gives_back_what_it_takes(topology: Topology) -> None:
    allocator = Allocator(topology)
    group = planned(topology, "a", "t", allocator=allocator)
    assert allocator.load("b1") == (0, 0)
    assert all(switch_configs(plan, topology) == [] for plan in group.plans if plan.ring is not None)
    for plan in group.plans:
        plan.release(allocator)
    again = planned(topology, "a", "t", allocator=allocator)
    assert again.parts["t"].ports == group.parts["t"].ports


def test_a_ring_is_stored_renewed_and_summed_up(topology: Topology) -> None:
    group = planned(topology, "a", "m")
    assert JobGroup.from_json(json.loads(json.dumps(group.to_json()))) == group
    renewed = group.renewed(Allocator(topology, next_generation=100))
    assert renewed.parts["m"].ring == group.parts["m"].ring
    assert renewed.parts["m"].streams[0].gen != group.parts["m"].streams[0].gen
    assert group.describe_all()["parts"]["m"] | {"generations": 0} == {
        "workers": list(WORKERS), "root": None, "rail": "m", "slots": 32, "tree": [], "ring": "mptcp", "generations": 0,
    }  # fmt: skip


def test_blocks_of_a_grid_have_rings_of_their_own(tmp_path: Path) -> None:
    odd = "  odd: {ip: 10.1.0.4/24, mac: 02:00:00:01:00:04, link: a1:4}\n"
    nics = (
        "{ip: 10.1.0.4/24, mac: 02:00:00:01:00:04, link: a1:4}, {ip: 10.2.0.4/24, mac: 02:00:00:02:00:04, link: b1:4}"
    )
    topology = load(tmp_path, GOOD.replace(odd, f"  w3: [{nics}]\n"))
    group = planned(topology, "a", "t", workers=(*WORKERS, "w3"), grid=(("pair", 2),))
    rings = {label: plan.workers for label, plan in group.parts.items() if plan.ring is not None}
    assert rings["t.pair.1"] == ("w2", "w3") and rings["t.across-pair.0"] == ("w0", "w2"), rings
    assert all(label.startswith("t") for label in rings)


@pytest.mark.parametrize(
    ("rails", "asked", "said"),
    [
        (("a", "t"), {"workers": ("w0", "odd")}, "job sums/t (the ring t): odd has no NIC on rail b"),
        (("t",), {}, "job sums: t is a ring of tcp; give a rail with a switch besides: --rails A,t"),
        ((), {"rail": "t"}, "job sums: t is a ring of tcp; give a rail with a switch besides: --rails A,t"),
        (("t", "m"), {}, "job sums: t is a ring of tcp; give a rail with a switch besides"),
        (("a", "t"), {"kind": "luwu", "root": "w2", "workers": ("w0", "w1")}, "t is a ring of tcp, for jobs of kind "
         "allreduce; this one is of kind luwu"),
        (("a", "t"), {"packed": True}, "t is a ring of tcp: such a job is planned without packed lanes"),
        (("a", "t"), {"streams": ("control",)}, "planned without packed lanes and without optional streams"),
        (("a", "t"), {"workers": ("w0",)}, "job sums/t: 1 worker; the ring t needs 2"),
        (("a", "u"), {}, "no rail 'u' in topology net"),
    ],
)  # fmt: skip
def test_rings_that_cannot_be(topology: Topology, rails: tuple[str, ...], asked: dict[str, Any], said: str) -> None:
    with pytest.raises(JobError) as info:
        planned(topology, *rails, **asked)
    assert said in str(info.value)


def test_members_of_a_controller_get_no_ring(
    topology: Topology, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_fake_programs(monkeypatch, tmp_path)
    addresses = dict.fromkeys(topology.switches, "127.0.0.1:1")
    with (
        RunningController(topology, addresses, tmp_path / "controller") as controller,
        controller.operator() as operator,
        pytest.raises(ControlPlaneError) as info,
    ):
        operator.create(JobRequest("sums", "allreduce", WORKERS, rails=("a", "t")))
    assert "job sums: t is a ring, which no member can join through a controller" in str(info.value)


def test_check_counts_rings(topology: Topology, tmp_path: Path) -> None:
    shown = CliRunner().invoke(app, ["topology", "check", str(tmp_path / "net.yaml")])
    assert "2 rails, 2 rings" in shown.output
    said = json.loads(CliRunner().invoke(app, ["topology", "check", str(tmp_path / "net.yaml"), "--json"]).output)
    assert said["rings"] == {
        "t": {"over": "b", "transport": "tcp"},
        "m": {"over": "a", "transport": "mptcp"},
    }
