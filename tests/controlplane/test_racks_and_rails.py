"""Racks and rails: read from the file, drawn, and followed by the trees of jobs."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from catchment.checkout import ROOT
from catchment.cli import app
from catchment.controlplane.deployment.fabric import flood_ports, forwarding_config, routes
from catchment.controlplane.jobs import Allocator, JobError, JobPlan, JobRequest, plan_job
from catchment.controlplane.jobs.entries import switch_configs
from catchment.controlplane.topology import Host, Link, PortRef, Switch, Topology, TopologyError, racks, star
from catchment.controlplane.topology.draw import draw
from catchment.controlplane.topology.layout import levels

EXAMPLES = ROOT / "sim" / "topologies"

GOOD = """\
switches:
  a1: {program: x.p4, ip: 10.1.0.254, mac: 02:00:00:01:fe:01}
  a2: {program: x.p4, ip: 10.1.1.254, mac: 02:00:00:01:fe:02}
  b1: {program: x.p4, ip: 10.2.0.254, mac: 02:00:00:02:fe:01}
hosts:
  w0:
    - {ip: 10.1.0.1/16, mac: 02:00:00:01:00:01, link: a1:1}
    - {ip: 10.2.0.1/16, mac: 02:00:00:02:00:01, link: b1:1}
  w1: {ip: 10.1.0.2/16, mac: 02:00:00:01:00:02, link: a2:1}
links:
  - [a1:9, a2:9]
  - [a1:8, a2:8]
racks:
  left: [a1, b1]
  right:
    - a2
rails:
  a: [a1, a2]
  b:
    - b1
"""


def load(tmp_path: Path, text: str) -> Topology:
    path = tmp_path / "net.yaml"
    path.write_text(text)
    return Topology.load(path)


def test_everything_is_read(tmp_path: Path) -> None:
    topology = load(tmp_path, GOOD)
    assert topology.racks == {"left": ("a1", "b1"), "right": ("a2",)}
    assert topology.rails == {"a": ("a1", "a2"), "b": ("b1",)}
    assert [topology.rack_of(s) for s in topology.switches] == ["left", "right", "left"]
    assert [topology.rail_of(s) for s in topology.switches] == ["a", "a", "b"]
    w0 = topology.host("w0")
    assert [str(nic.link) for nic in w0.nics] == ["a1:1", "b1:1"]
    assert topology.ports("b1") == {1: w0.nics[1]}
    plane = topology.plane("b")
    assert list(plane.switches) == ["b1"]
    assert list(plane.hosts) == ["w0"]
    assert plane.host("w0").mac == "02:00:00:02:00:01"
    assert plane.host("w0").others == ()
    assert (plane.racks, plane.links) == ({"left": ("b1",)}, ())
    assert topology.plane(None) is topology
    with pytest.raises(TopologyError, match="no rail 'c' in topology net; it has: a, b"):
        topology.plane("c")


@pytest.mark.parametrize(
    ("old", "new", "line", "complaint"),
    [
        ("left: [a1, b1]", "left: [a1, b9]", 14, "racks.left: no switch 'b9'; there are: a1, a2, b1"),
        ("    - a2\n", "    - a1\n", 16, "racks.right: switch a1 is already in rack left"),
        ("left: [a1, b1]", "left: a1", 14, "racks.left: must be a list of names"),
        ("left: [a1, b1]", "left: []", 14, "racks.left: must not be empty"),
        ("left: [a1, b1]", "left: [[a1], b1]", 14, "racks.left: must be a list of names"),
        ("left: [a1, b1]", "le ft: [a1, b1]", 14, "'le ft' cannot be the name of a rack"),
        ("left: [a1, b1]", "right: [a1, b1]", 15, "racks.right is given twice (first in line 14)"),
        ("racks:\n", "racks: [a]\nrocks:\n", 14, "rocks is unknown"),
        ("racks:\n  left: [a1, b1]\n  right:\n    - a2\n", "racks: [a1]\n", 13, "`racks` must be a mapping"),
        ("    - b1\n", "    - b1\n    - a2\n", 21, "rails.b: switch a2 is already in rail a"),
        ("    - b1\n", "    - b2\n", 20, "rails.b: no switch 'b2'"),
        ("a: [a1, a2]", "a: [a1]", 3, "switches.a2: is in no rail; with `rails`, each switch is in one"),
        ("[a1:8, a2:8]", "[a1:8, b1:8]", 12, "links: [a1:8, b1:8] joins rail a to rail b"),
        ("[a1:8, a2:8]", "[a1:8, a2:9]", 12, "links: port a2:9 is already used"),
        ("[a1:8, a2:8]", "[a1:8, a3:9]", 12, "links: no switch 'a3'"),
        ("10.2.0.1/16, mac: 02:00:00:02:00:01, link: b1:1", "10.1.9.1/16, mac: 02:00:00:02:00:01, link: a2:2", 8,
         "hosts.w0[1].link: w0 has a NIC in rail a already, on a1:1"),
        ("10.2.0.1/16", "10.1.0.9/16", 8, "hosts.w0[1].ip: 10.1.0.9/16 cannot reach its switch"),
        ("02:00:00:02:00:01", "02:00:00:01:00:01", 8, "address 02:00:00:01:00:01 is already used by w0"),
        ("    - {ip: 10.1.0.1/16, mac: 02:00:00:01:00:01, link: a1:1}\n", "    - x\n", 7, "`hosts.w0[0]` must be a"),
    ],
)  # fmt: skip
def test_mistakes_name_file_and_line(tmp_path: Path, old: str, new: str, line: int, complaint: str) -> None:
    assert old in GOOD
    text = GOOD.replace(old, new, 1)
    with pytest.raises(TopologyError) as info:
        load(tmp_path, text)
    assert str(info.value).startswith(f"{tmp_path}/net.yaml:{line}: "), info.value
    assert complaint in str(info.value)


def test_nics_in_one_network_are_refused(tmp_path: Path) -> None:
    text = GOOD.replace("10.2.0.1/16", "10.1.9.1/8").replace("ip: 10.2.0.254", "ip: 10.9.0.254")
    with pytest.raises(TopologyError, match=r"net\.yaml:8: hosts\.w0\[1\]\.ip: 10\.1\.9\.1/8 is in the network of w0"):
        load(tmp_path, text)


def test_several_nics_need_rails(tmp_path: Path) -> None:
    with pytest.raises(TopologyError, match=r"net\.yaml:8: .*a host with several NICs needs `rails`"):
        load(tmp_path, GOOD[: GOOD.index("rails:")])


# Trees


def two_spines(count: int = 4, workers: int = 2) -> Topology:
    """Racks of `workers`, each switch on two spines; the optimizer node in the first rack."""
    base = racks([[f"w{r}{i}" for i in range(workers)] for r in range(count)], program=Path("x.p4"), slots=256)
    spine = base.switch("sp")
    second = replace(spine, name="sq", ip=spine.ip + 20000, mac="02:00:00:00:ff:01")
    extra = tuple(Link(PortRef(f"r{r + 1}", 100), PortRef("sq", r + 1)) for r in range(count))
    first = base.host("w00")
    opt = Host("opt", first.ip + 99, "02:00:00:00:77:01", PortRef("r1", 90))
    return replace(
        base, switches={**base.switches, "sq": second}, links=(*base.links, *extra), hosts={**base.hosts, "opt": opt}
    )


def test_jobs_spread_over_spines() -> None:
    topology = two_spines()
    allocator = Allocator(topology)
    workers = ["w00", "w10", "w20"]
    tops = [
        plan_job("allreduce", topology, name=f"j{i}", workers=workers, slots=8, allocator=allocator).tree[0].switch
        for i in range(6)
    ]
    assert sorted(tops) == ["sp"] * 3 + ["sq"] * 3
    between = [
        {b.switch for b in plan_job("luwu", topology, name=f"k{i}", workers=workers, root="opt", slots=8,
                                        allocator=allocator).tree} & {"sp", "sq"}
        for i in range(2)
    ]  # fmt: skip
    assert sorted(map(sorted, between)) == [["sp"], ["sq"]], "towards a root in a rack as well"


def test_a_job_within_a_rack_stays_there() -> None:
    plan = plan_job("allreduce", two_spines(), name="j", workers=["w20", "w21"], slots=8)
    assert [branch.switch for branch in plan.tree] == ["r3"]


def test_no_rack_carries_what_two_others_say_to_each_other() -> None:
    """A cable between racks 1 and 2 and one between 2 and 3 make a shorter way through rack 2: it is not taken."""
    topology = racks([["a"], ["b"], ["c"]], program=Path("x.p4"))
    cables = (Link(PortRef("r1", 8), PortRef("r2", 8)), Link(PortRef("r2", 9), PortRef("r3", 9)))
    only = replace(topology, links=cables)
    assert {b.switch for b in plan_job("allreduce", only, name="j", workers=["a", "b", "c"], slots=8).tree} == {
        "r1", "r2", "r3"
    }, "rack 2 is the top: everything in it is its own"  # fmt: skip
    chain = plan_job("allreduce", only, name="j", workers=["a", "c"], slots=8)
    assert [b.switch for b in chain.tree] == ["r2", "r1", "r3"], "there is no other way"
    both = replace(topology, links=(*topology.links, *cables))
    assert [b.switch for b in plan_job("allreduce", both, name="j", workers=["a", "c"], slots=8).tree] == [
        "sp",
        "r1",
        "r3",
    ]


def test_random_jobs_on_racks_and_spines(rng: random.Random) -> None:
    """Every worker is in the tree once, every branch's parent is its neighbour, and only its own racks take part."""
    topology = two_spines(count=6, workers=4)
    allocator = Allocator(topology)
    for number in range(12):
        hosts = rng.sample([h for h in topology.hosts if h != "opt"], rng.randint(1, 12))
        plan = (
            plan_job("luwu", topology, name=f"n{number}", workers=hosts, root="opt", slots=4, allocator=allocator)
            if rng.random() < 0.5
            else plan_job("allreduce", topology, name=f"n{number}", workers=hosts, slots=4, allocator=allocator)
        )
        members = [name for branch in plan.tree for _, name in branch.members]
        assert sorted(members) == sorted([*hosts, *(b.switch for b in plan.tree[1:])])
        racks_used = {topology.rack_of(b.switch) for b in plan.tree} - {None}
        wanted = {topology.rack_of(topology.host(h).link.switch) for h in hosts}
        assert racks_used == wanted | ({"rack1"} if plan.root else set())
        for branch in plan.tree[1:]:
            assert branch.parent is not None
            assert branch.up_port is not None
            assert topology.ports(branch.switch)[branch.up_port] == branch.parent


# Rails


def rails() -> Topology:
    return Topology.load(EXAMPLES / "two-rails.yaml")


def test_jobs_spread_over_rails_and_can_ask_for_one() -> None:
    topology = rails()
    allocator = Allocator(topology)
    workers = ["w0", "w1", "w2", "w3"]
    plans = [
        plan_job("luwu", topology, name=f"j{i}", workers=workers, root="opt", allocator=allocator) for i in range(4)
    ]
    assert [plan.rail for plan in plans] == ["a", "b", "a", "b"]
    assert [b.switch for b in plans[1].tree] == ["spb", "b1", "b2"]
    description = plans[1].describe("w2")
    assert description["local"][0] == "10.2.2.1"
    assert description["switch"][0] == "10.2.2.254"
    assert plan_job("allreduce", topology, name="x", workers=workers, rail="b", allocator=allocator).rail == "b"
    assert JobPlan.from_json(plans[1].to_json()) == plans[1]
    assert {c.switch for c in switch_configs(plans[1], topology)} == {"spb", "b1", "b2"}
    (rewrite,) = [
        e for c in switch_configs(plans[1], topology) if c.switch == "b2"
        for e in c.entries if e.table == "receivers" and e.match == {"gen": plans[1].streams[0].gen, "port": 1}
    ]  # fmt: skip
    assert rewrite.params["dst_mac"] == "02:00:00:02:02:01"


def test_rails_that_do_not_fit() -> None:
    topology = rails()
    with pytest.raises(JobError, match="no rail 'c' in topology two-rails; it has: a, b"):
        plan_job("allreduce", topology, name="j", workers=["w0"], rail="c")
    one_legged = replace(topology.host("w1"), others=())
    crippled = replace(topology, hosts={**topology.hosts, "w1": one_legged})
    assert plan_job("allreduce", crippled, name="j", workers=["w0", "w1"]).rail == "a"
    with pytest.raises(JobError, match="w1 has no NIC on rail b"):
        plan_job("allreduce", crippled, name="j", workers=["w0", "w1"], rail="b")
    other = replace(crippled, hosts={**crippled.hosts, "w0": topology.host("w0").nics[1]})
    with pytest.raises(JobError, match=r"no rail has a NIC of every member \(w0: b; w1: a\)"):
        plan_job("allreduce", other, name="j", workers=["w0", "w1"])
    with pytest.raises(JobError, match="has no rails"):
        plan_job("allreduce", star(["w0"], program=Path("x.p4")), name="j", workers=["w0"], rail="a")


def test_plain_forwarding_stays_within_a_rail() -> None:
    topology = rails()
    plane = topology.plane("b")
    assert flood_ports(plane, "b1") == [1, 2, 3]
    assert routes(plane, "b1") == {"w0": 1, "w1": 2, "w2": 3, "w3": 3, "opt": 3}
    forwarded = {e.match["dst"] for e in forwarding_config(topology, "b1").entries if e.table == "l2" and e.match}
    assert forwarded == {nic.mac for nic in topology.nics() if topology.rail_of(nic.link.switch) == "b"}


# Pictures and the command


def rectangles(tree: ElementTree.Element, kind: str) -> dict[str, tuple[float, float, float, float]]:
    """Name of what is in it -> box."""
    found = {}
    elements = list(tree.iter())
    for at, element in enumerate(elements):
        if element.attrib.get("class") == kind:
            box = [float(element.attrib[key]) for key in ("x", "y", "width", "height")]
            found[elements[at + 1].text or ""] = (box[0], box[1], box[0] + box[2], box[1] + box[3])
    return found


@pytest.mark.parametrize("topology", [rails(), two_spines(), racks([["a"], [], ["b", "c"]], ["o"], program=Path("x"))])
def test_the_picture_shows_racks_and_rails(topology: Topology) -> None:
    tree = ElementTree.fromstring(draw(topology))
    frames = rectangles(tree, "rack")
    boxes = rectangles(tree, "switch") | rectangles(tree, "host")
    assert set(frames) == set(topology.racks)
    assert set(boxes) == {*topology.switches, *topology.hosts}
    for name, (left, top, right, bottom) in boxes.items():
        node: Switch | Host = topology.switches[name] if name in topology.switches else topology.hosts[name]
        home = topology.rack_of(name if isinstance(node, Switch) else node.link.switch)
        for rack, (x1, y1, x2, y2) in frames.items():
            inside = x1 < left and right < x2 and y1 < top and bottom < y2
            outside = right <= x1 or x2 <= left or bottom <= y1 or y2 <= top
            assert inside if rack == home else outside, (name, rack)
        assert right <= float(tree.attrib["width"])
        assert bottom <= float(tree.attrib["height"])
    for first in boxes:
        for second in boxes:
            a, b = boxes[first], boxes[second]
            apart = a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
            assert first == second or apart, (first, second)
    lines = [e for e in tree.iter() if e.tag.endswith("line")]
    assert len(lines) == len(topology.links) + len(list(topology.nics()))
    assert len({e.attrib["stroke"] for e in lines}) == max(1, len(topology.rails))
    texts = [e.text for e in tree.iter() if e.tag.endswith("text")]
    for rail in topology.rails:
        assert f"rail {rail}" in texts


def test_spines_are_above_racks() -> None:
    assert levels(two_spines(count=2)) == {"sp": 0, "sq": 0, "r1": 1, "r2": 1}


def test_check_shows_them() -> None:
    result = CliRunner().invoke(app, ["topology", "check", str(EXAMPLES / "two-rails.yaml"), "--json"])
    assert result.exit_code == 0, result.output
    assert '"rails": {' in result.output
    assert '"rack": "right"' in result.output
    plain = CliRunner().invoke(app, ["topology", "check", str(EXAMPLES / "two-rails.yaml")])
    assert "2 racks, 2 rails" in plain.output
    assert "no link between them" not in plain.output, "that is what rails are"


def test_a_job_on_several_rails_has_what_lets_one_fail() -> None:
    """A part of each rail, one to agree on, and one for each other rail; told to every member with the rail's rate."""
    topology = Topology.load(EXAMPLES / "three-rails.yaml")
    hosts = list(topology.hosts)
    group = JobRequest("train", "allreduce", hosts, slots=32, rails=("a", "b", "c")).plan(topology, Allocator(topology))
    assert list(group.parts)[:3] == ["a", "b", "c"]
    beside = {f"{rail}.control" for rail in "abc"} | {f"{r}.for.{o}" for r, o in itertools.permutations("abc", 2)}
    assert set(group.parts) == {"a", "b", "c"} | beside
    assert {group.parts[f"{rail}.control"].slots for rail in "abc"} == {8}
    assert {group.parts[label].slots for label in group.parts if not label.endswith("control")} == {32}
    assert {label: plan.rail for label, plan in group.parts.items()} == {label: label[0] for label in group.parts}
    told = group.describe("w2")["parts"]
    assert [told[rail]["rate"] for rail in "abc"] == [400_000_000, 200_000_000, 100_000_000]
    assert len({tuple(part["local"]) for part in told.values()}) == len(told), "two streams at one address"
    assert set(group.whole()) == {"a", "b", "c"}, "splits are of the rails alone"
    alone = JobRequest("one", "allreduce", hosts, rails=("a",)).plan(topology, Allocator(topology))
    assert list(alone.parts) == ["a"]


def test_a_host_without_a_nic_on_a_rail_is_named(tmp_path: Path) -> None:
    text = (EXAMPLES / "three-rails.yaml").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if "b1:3" not in line]
    topology = load(tmp_path, "\n".join(lines).replace("../../p4src", str(EXAMPLES.parents[1] / "p4src")))
    request = JobRequest("train", "allreduce", list(topology.hosts), rails=("a", "b"))
    with pytest.raises(JobError, match="w2 has no NIC on rail b"):
        request.plan(topology, Allocator(topology))
