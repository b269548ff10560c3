"""Topology files: the examples load, and every mistake is reported with file and line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from catchment.checkout import ROOT
from catchment.controlplane.jobs import plan_job
from catchment.controlplane.topology import Host, Link, PortRef, Target, Topology, TopologyError, racks, star
from catchment.controlplane.topology.draw import draw
from catchment.controlplane.topology.layout import levels
from catchment.controlplane.topology.rates import port_faults
from catchment.softswitch.native import runtime

EXAMPLES = sorted((ROOT / "sim" / "topologies").glob("*.yaml"))

GOOD = """\
mtu: 9000
switches:
  s1:
    program: luwu.p4
    ip: 10.0.0.254
    mac: 02:00:00:00:fe:01
    grpc: 127.0.0.1:9559
    target: bmv2
    lanes: 8
  s2: {program: ../x.p4, ip: 10.0.1.254, mac: 12:30:00:00:00:02, device_id: 2}
hosts:
  w0: {ip: 10.0.0.1/16, mac: 02:00:00:00:00:01, link: s1:1}
  w1: {ip: 10.0.1.1/16, mac: 02:00:00:00:00:02, link: s2:1}
links:
  - [s1:9, s2:8]
"""


def load(tmp_path: Path, text: str) -> Topology:
    path = tmp_path / "net.yaml"
    path.write_text(text)
    return Topology.load(path)


def test_everything_is_read(tmp_path: Path) -> None:
    topology = load(tmp_path, GOOD)
    assert (topology.name, topology.mtu) == ("net", 9000)
    s1, s2 = topology.switch("s1"), topology.switch("s2")
    assert (s1.target, s1.lanes, s1.grpc, s1.device_id) == (Target.BMV2, 8, "127.0.0.1:9559", 1)
    assert (s2.target, s2.lanes, s2.grpc, s2.device_id) == (Target.EMBEDDED, 64, "auto", 2)
    assert s2.mac == "12:30:00:00:00:02", "YAML would read this as a number in base 60"
    assert s2.program == (tmp_path / "../x.p4").resolve()
    assert topology.ports("s1") == {1: topology.host("w0"), 9: PortRef("s2", 8)}
    assert topology.ports("s2") == {1: topology.host("w1"), 8: PortRef("s1", 9)}
    assert topology.host("w1").shm == ""
    shared = load(tmp_path, GOOD.replace("link: s2:1", "link: s2:1, shm: /run/w1"))
    assert shared.host("w1").shm == "/run/w1"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_examples_load_and_their_programs_exist(path: Path) -> None:
    for switch in Topology.load(path).switches.values():
        assert switch.program.is_file()


@pytest.mark.parametrize(("hosts", "workers"), [(1, 32), (32, 32), (33, 64), (64, 64)])
def test_a_switch_is_built_for_the_workers_that_its_ports_may_bring(hosts: int, workers: int) -> None:
    one = star([f"w{number}" for number in range(hosts)], program=Path("x.p4"))
    assert one.switch("s1").workers == workers
    pairs = [[f"w{number}a", f"w{number}b"] for number in range(hosts)]
    tree = racks(pairs, program=Path("x.p4"))
    assert {name: switch.workers for name, switch in tree.switches.items()} == {
        "sp": workers, **{f"r{number + 1}": 32 for number in range(hosts)}
    }  # fmt: skip
    assert replace(one, switches={"s1": replace(one.switch("s1"), workers=5)}).switch("s1").workers == 5


def test_there_are_examples() -> None:
    assert EXAMPLES


@pytest.mark.parametrize(
    ("old", "new", "line", "complaint"),
    [
        ("mtu: 9000", "mtu: 9000x", 1, "mtu: 9000x is not a whole number"),
        ("mtu: 9000", "mtu: 100", 1, "mtu: 100 is not between 576 and 65535"),
        ("mtu: 9000", "mut: 9000", 1, "mut is unknown; known: name, mtu, switches, hosts, links, racks, rails"),
        ("mtu: 9000", "mtu: [9000]", 1, "mtu: must be a single value"),
        ("mtu: 9000", "name: a/b", 1, "'a/b' may hold letters"),
        ("lanes: 8", "lanes: 65", 9, "switches.s1.lanes: 65 is not one of 8, 64, 256, 1024"),
        ("lanes: 8", "slots: 100", 9, "switches.s1.slots: 100 is not a power of two"),
        ("lanes: 8", "workers: 65", 9, "switches.s1.workers: 65 is not between 1 and 64"),
        ("lanes: 8", "workers: 0", 9, "switches.s1.workers: 0 is not between 1 and 64"),
        ("target: bmv2", "target: tofino", 8, "switches.s1.target: tofino is not one of: embedded, bmv2"),
        ("127.0.0.1:9559", "127.0.0.1", 7, "switches.s1.grpc: 127.0.0.1 is neither `auto` nor host:port"),
        ("    ip: 10.0.0.254", "    ip: 10.0.0.256", 5, "switches.s1.ip: 10.0.0.256 is not an IPv4 address"),
        ("    program: luwu.p4\n", "", 4, "switches.s1.program is missing"),
        ("02:00:00:00:fe:01", "03:00:00:00:fe:01", 6, "multicast address"),
        ("02:00:00:00:fe:01", "02:00:00:00:fe", 6, "is not a MAC address"),
        ("02:00:00:00:fe:01", "00:00:00:00:00:00", 6, "00:00:00:00:00:00 is no interface's address"),
        ("    ip: 10.0.0.254", "    ip: 224.0.0.1", 5, "switches.s1.ip: 224.0.0.1 is no address that an interface"),
        ("10.0.0.1/16", "0.0.0.0/0", 12, "hosts.w0.ip: 0.0.0.0 is no address that an interface can have"),
        ("10.0.0.1/16", "255.255.255.255/0", 12, "hosts.w0.ip: 255.255.255.255 is no address that an interface"),
        ("10.0.0.1/16", "10.0.0.0/16", 12, "hosts.w0.ip: 10.0.0.0/16 is the address of the network itself"),
        ("10.0.0.1/16", "10.0.255.255/16", 12, "is the address of everybody in its network, and no host's"),
        ("  s2: {program", "  s1: {program", 10, "switches.s1 is given twice (first in line 3)"),
        ("  s2: {program", "  switch2: {program", 10, "'switch2' cannot be a name here"),
        ("10.0.0.1/16", "10.0.0.1", 12, "hosts.w0.ip: add the prefix length, as in 10.0.0.1/24"),
        ("10.0.0.1/16", "10.9.0.1/16", 12, "hosts.w0.ip: 10.9.0.1/16 cannot reach its switch s1 (10.0.0.254)"),
        ("10.0.1.1/16", "10.0.0.1/16", 13, "hosts.w1.ip: address 10.0.0.1 is already used by w0"),
        ("mac: 02:00:00:00:00:02", "mac: 02:00:00:00:fe:01", 13, "address 02:00:00:00:fe:01 is already used by s1"),
        ("link: s1:1", "link: s1", 12, "hosts.w0.link: s1 is not switch:port, as in s1:1"),
        ("link: s1:1", "link: s3:1", 12, "hosts.w0.link: no switch 's3'; there are: s1, s2"),
        ("link: s1:1", "link: s1:510", 12, "port 510 is not between 1 and 509"),
        ("link: s2:1", "link: s2:1, shm: run/w1", 13, "hosts.w1.shm: 'run/w1' is not the whole path of a socket"),
        ("link: s2:1", "link: s2:1, shm: '/run/w1,mode=777'", 13, "is not the whole path of a socket"),
        ("link: s1:1", "link: s1:1, shm: /run/w0", 12, "hosts.w0.shm: s1 is no embedded switch"),
        ("[s1:9, s2:8]", "[s1:1, s2:8]", 15, "port s1:1 is already used by another link"),
        ("[s1:9, s2:8]", "[s1:9]", 15, "links: must be [switch:port, switch:port] or with a rate"),
        ("[s1:9, s2:8]", "[s1:9, s1:8]", 15, "joins a switch to itself"),
        ("hosts:", "hosts: {", 13, "not YAML"),
    ],
)
def test_mistakes_name_file_and_line(tmp_path: Path, old: str, new: str, line: int, complaint: str) -> None:
    assert old in GOOD
    with pytest.raises(TopologyError) as info:
        load(tmp_path, GOOD.replace(old, new, 1))
    assert str(info.value).startswith(f"{tmp_path}/net.yaml:{line}: ")
    assert complaint in str(info.value)


@pytest.mark.parametrize(
    ("text", "complaint"), [("", "empty file"), ("- a", "must be a mapping"), ("mtu: 1500", "switches is missing")]
)
def test_files_that_are_no_topology(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(TopologyError, match=complaint):
        load(tmp_path, text)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(TopologyError, match=r"cannot read topology .*absent\.yaml: No such file"):
        Topology.load(tmp_path / "absent.yaml")


def test_names_that_do_not_exist() -> None:
    topology = star(["w0"], program=Path("x.p4"))
    with pytest.raises(TopologyError, match="no switch 's2' in topology star; it has: s1"):
        topology.switch("s2")
    with pytest.raises(TopologyError, match="no host 'w9' in topology star; it has: w0"):
        topology.host("w9")


def test_a_topology_without_hosts_says_so() -> None:
    with pytest.raises(TopologyError, match="no host 'w0' in topology star; it has: none"):
        replace(star(["w1"], program=Path("x.p4")), hosts={}).host("w0")


def test_a_socket_of_a_switch_is_found_from_every_folder(tmp_path: Path) -> None:
    for written, meant in (("s1.sock", tmp_path / "s1.sock"), ("/run/s1.sock", Path("/run/s1.sock"))):
        topology = load(tmp_path, GOOD.replace("127.0.0.1:9559", f"unix:{written}"))
        assert topology.switch("s1").grpc == f"unix:{meant}"


def test_a_link_of_two_takes_both_addresses_of_its_network(tmp_path: Path) -> None:
    text = GOOD.replace("10.0.0.254", "10.0.0.2").replace("10.0.0.1/16", "10.0.0.3/31")
    assert str(load(tmp_path, text).host("w0").ip) == "10.0.0.3/31"


def test_built_topologies_are_consistent() -> None:
    for topology in (
        star([f"h{i}" for i in range(249)], program=Path("x.p4")),
        racks([["a", "b"], ["c"], [*"defgh"]], ["opt"], program=Path("x.p4")),
    ):
        addresses = [h.ip.ip for h in topology.hosts.values()] + [s.ip for s in topology.switches.values()]
        macs = [h.mac for h in topology.hosts.values()] + [s.mac for s in topology.switches.values()]
        assert len(set(addresses)) == len(addresses)
        assert len(set(macs)) == len(macs)
        for host in topology.hosts.values():
            assert topology.switch(host.link.switch).ip in host.ip.network
            assert topology.ports(host.link.switch)[host.link.port] == host
        for link in topology.links:
            assert topology.ports(link.a.switch)[link.a.port] == link.b
        for switch in topology.switches:
            hosts = [p for p in topology.ports(switch).values() if isinstance(p, Host)]
            assert len(hosts) == sum(h.link.switch == switch for h in topology.hosts.values())


def test_impossible_stars() -> None:
    with pytest.raises(TopologyError):
        star(["a", "a"], program=Path("x.p4"))
    with pytest.raises(TopologyError):
        star([], program=Path("x.p4"))


def test_a_picture_shows_everything_once_and_apart() -> None:
    topology = racks([["w0", "w1"], ["w2"], []], ["opt"], program=Path("luwu.p4"))
    tree = ElementTree.fromstring(draw(topology))
    texts = [e.text or "" for e in tree.iter() if e.tag.endswith("text")]
    for name in (*topology.switches, *topology.hosts):
        assert texts.count(name) == 1
    for switch in topology.switches.values():
        assert str(switch.ip) in texts
    boxes = [
        tuple(float(e.attrib[key]) for key in ("x", "y", "width", "height"))
        for e in tree.iter()
        if e.tag.endswith("rect") and e.attrib.get("class") in ("switch", "host")
    ]
    assert len(boxes) == len(topology.switches) + len(topology.hosts)
    width, height = float(tree.attrib["width"]), float(tree.attrib["height"])
    for number, (x, y, w, h) in enumerate(boxes):
        assert x >= 0 and x + w <= width and y >= 0 and y + h <= height
        for x2, y2, w2, h2 in boxes[:number]:
            assert x + w <= x2 or x2 + w2 <= x or y + h <= y2 or y2 + h2 <= y, "boxes overlap"
    assert len([e for e in tree.iter() if e.tag.endswith("line")]) == len(topology.links) + len(topology.hosts)


def test_a_ring_of_switches_can_be_drawn() -> None:
    tree = racks([["w0"], ["w1"]], program=Path("luwu.p4"))
    ring = Topology("ring & co", tree.switches, tree.hosts, (*tree.links, Link(PortRef("r1", 9), PortRef("r2", 9))))
    assert sorted(levels(ring).values()) == [0, 1, 1]
    ElementTree.fromstring(draw(ring))


# Rates


def rated(**replaced: str) -> str:
    words = {"nic": "rate: 400mbit", "link": "1gbit", "target": "embedded"} | replaced
    return f"""
switches:
  s1: {{program: luwu.p4, ip: 10.0.0.254, mac: 02:00:00:00:fe:01, target: {words["target"]}}}
  s2: {{program: luwu.p4, ip: 10.0.0.253, mac: 02:00:00:00:fe:02}}
hosts:
  w0: {{ip: 10.0.0.1/24, mac: 02:00:00:00:00:01, link: s1:1, {words["nic"]}}}
  w1: {{ip: 10.0.0.2/24, mac: 02:00:00:00:00:02, link: s1:2}}
links:
  - [s1:8, s2:8, {words["link"]}]
  - [s1:9, s2:9]
"""


def test_rates_of_nics_and_links_limit_the_ports_at_their_ends(tmp_path: Path) -> None:
    path = tmp_path / "rated.yaml"
    path.write_text(rated())
    topology = Topology.load(path)
    assert (topology.host("w0").rate, topology.host("w1").rate) == (400_000_000, 0)
    assert [link.rate for link in topology.links] == [1_000_000_000, 0]
    limited = port_faults(topology, "s1")
    assert limited == {
        1: "rate=400000kbit,queue=262144,seed=0", 8: "out.rate=1000000kbit,out.queue=262144,seed=0"
    }  # fmt: skip
    assert port_faults(topology, "s2") == {8: limited[8]}
    for spec in limited.values():
        assert runtime().parse_faults(spec) == spec, "the switch tells it back as the topology says it"
    job = plan_job("allreduce", topology, name="x", workers=["w0", "w1"], lanes=64)
    assert job.describe("w0")["rate"] == 400_000_000 and "rate" not in job.describe("w1")


@pytest.mark.parametrize(
    ("replaced", "complaint"),
    [
        ({"nic": "rate: 400"}, "400 is not a rate from 1kbit to 400gbit"),
        ({"nic": "rate: 0.5kbit"}, "0.5kbit is not a rate"),
        ({"nic": "rate: fast"}, "fast is not a rate"),
        ({"link": "500gbit"}, "500gbit is not a rate"),
        ({"link": "1gbit, 2gbit"}, "must be .switch:port, switch:port. or with a rate"),
        ({"target": "bmv2"}, "s1 is no embedded switch; others keep no port to a rate"),
    ],
)
def test_rates_that_cannot_be_are_named(tmp_path: Path, replaced: dict[str, str], complaint: str) -> None:
    path = tmp_path / "rated.yaml"
    path.write_text(rated(**replaced))
    with pytest.raises(TopologyError, match=complaint):
        Topology.load(path)
