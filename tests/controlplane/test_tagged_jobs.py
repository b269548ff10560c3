"""Jobs with tags: the keys that their switches and members get, who may not have them, and attacks on one that runs."""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from model_fabric import ModelFabric
from scapy.layers.inet import IP, UDP
from scapy.packet import Raw

from catchment.checkout import ROOT
from catchment.controlplane.controller import messages
from catchment.controlplane.jobs import Allocator, JobError, JobGroup, JobPlan, JobRequest, plan_job
from catchment.controlplane.jobs.entries import switch_configs
from catchment.controlplane.topology import Topology, TopologyError, racks, star
from catchment.controlplane.topology.schema import read_topology
from catchment.host import Stream
from catchment.host.collectives import CollectiveError
from catchment.host.membership import Description
from catchment.sim.golden import tags
from catchment.sim.lab.shm_lab import ShmLab
from catchment.sim.lab.traffic.frames import Sender
from catchment.wire.generated.constants import HEADER_BYTES, DropReason, Header
from catchment.wire.generated.scapy_layers import Catchment

PROGRAM = Path("luwu.p4")
LANES = 8
HOSTS = ("w0", "w1", "opt")
PATIENCE = 240.0


def tree() -> Topology:
    bare = racks([["w0", "w1"], ["w2"]], ["opt"], program=PROGRAM, lanes=LANES)
    return replace(bare, switches={name: replace(one, tags=True) for name, one in bare.switches.items()})


def luwu(topology: Topology, workers: list[str], **options: object) -> JobPlan:
    return plan_job("luwu", topology, name="job", workers=workers, root="opt", slots=4, **options)  # type: ignore[arg-type]


def test_keys_are_fresh_and_reach_switches_and_members() -> None:
    """Another key for each stream and epoch; the same for switches and members; there before frames are admitted."""
    topology = tree()
    allocator = Allocator(topology)
    job = luwu(topology, ["w0", "w1", "w2"], tags=True, allocator=allocator)
    again = job.renewed(allocator)
    keys = [stream.key for plan in (job, again) for stream in plan.streams]
    assert len(set(keys)) == 4 and all(len(bytes.fromhex(key)) == 16 for key in keys)
    for config in switch_configs(job, topology):
        order = [(entry.match["gen"], entry.table) for entry in config.entries if entry.table in ("tags", "jobs")]
        for stream in job.streams:
            mine = [table for gen, table in order if gen == stream.gen]
            assert mine == sorted(mine, reverse=True) and mine.count("tags") == mine.count("jobs") > 0
            key = bytes.fromhex(stream.key)
            for entry in config.entries:
                if entry.table == "tags" and entry.match["gen"] == stream.gen:
                    assert (entry.params["k0"], entry.params["k1"]) == tags.halves(key)
    for host in job.ports:
        told = messages.description(JobGroup("job", {"": job}), host)
        description = Description.of(told, 1)
        for stream in job.streams:
            assert description.streams[stream.name].key == stream.key
            assert Stream(**description.as_member()[stream.name]).key == stream.key
            assert messages.described(told)[stream.name]["key"] == stream.key
    assert JobPlan.from_json(json.loads(json.dumps(job.to_json()))) == job


def test_a_key_is_not_shown() -> None:
    job = luwu(tree(), ["w0"], tags=True)
    for stream in job.streams:
        assert stream.key and stream.key not in repr(job)
        assert stream.key not in repr(Description.of(messages.description(JobGroup("job", {"": job}), "w0"), 1))


def test_frames_without_a_tag_are_as_before() -> None:
    """A job that does not ask for them has no entry, no key, and the same largest payload, on such a switch too."""
    topology = tree()
    job = luwu(topology, ["w0", "w2"])
    assert not job.tags and not any(e.table == "tags" for c in switch_configs(job, topology) for e in c.entries)
    assert "key" not in job.describe("w0")["gradients"]
    assert (
        job.param_bytes
        == luwu(racks([["w0"], ["w2"]], ["opt"], program=PROGRAM, lanes=LANES), ["w0", "w2"]).param_bytes
    )


def test_who_cannot_have_tags() -> None:
    plain = star(HOSTS, program=PROGRAM, lanes=LANES)
    with pytest.raises(JobError, match="switch s1 is built without: write `tags: true`"):
        luwu(plain, ["w0"], tags=True)
    with pytest.raises(JobError, match=r"kind slots run on p4sgd\.p4, which has no tags"):
        JobRequest("job", "slots", ["w0"], tags=True).plan(
            star(HOSTS, program=Path("p4sgd.p4"), tags=True), Allocator(plain)
        )


def test_sums_through_a_tree_have_tags_all_the_way() -> None:
    """Racks are one worker each, and sign as such; a frame that somebody changed gets nowhere."""
    topology = tree()
    job = luwu(topology, ["w0", "w1", "w2"], tags=True)
    fabric = ModelFabric(topology)
    fabric.deploy(job)
    stream = job.stream("gradients")
    key, arrived = bytes.fromhex(stream.key), []
    for worker in ("w0", "w1", "w2"):
        frame = vector(topology, job, worker, [1 + job.workers.index(worker)] * LANES)
        changed = bytearray(frame)
        changed[-12] ^= 1
        assert fabric.send(worker, bytes(changed)) == []
        arrived += fabric.send(worker, frame)
    [(host, data)] = arrived
    read = tags.opened(key, data[42:])
    assert host == "opt" and read is not None and read[1] == (6).to_bytes(4, "big") * LANES
    assert sum(one.drops[DropReason.BAD_TAG] for one in fabric.switches.values()) == 3


def vector(topology: Topology, job: JobPlan, worker: str, values: list[int], key: str | None = None) -> bytes:
    """A worker's vector 0 with the job's tag, or with that of another key; without a tag for the key ""."""
    here = topology.host(worker)
    stream = job.stream("gradients")
    sender = Sender.of(job.describe(worker), here.mac, topology.switch(here.link.switch).mac)
    frame = sender.vector(values, gen=stream.gen, seq=0)
    frame[Catchment].wid = job.workers.index(worker)
    if key == "":
        return bytes(frame)
    content = bytes(frame[Catchment])
    made = tags.tagged(bytes.fromhex(key or stream.key), Header.unpack(content), content[HEADER_BYTES:])
    frame[UDP].remove_payload()
    for layer in (IP, UDP):
        frame[layer].len = frame[layer].chksum = None
    return bytes(frame / Raw(made))


@pytest.fixture(scope="module")
def lab() -> Iterator[ShmLab]:
    with ShmLab(HOSTS, lanes=LANES, slots=64, tags=True) as lab:
        yield lab


def refused(lab: ShmLab) -> int:
    return lab.client.counter("drops", DropReason.BAD_TAG)[0].packets


def test_collectives_refuse_a_job_with_tags(lab: ShmLab) -> None:
    job = lab.allreduce(["w0", "w1"], slots=4, tags=True)
    try:
        with pytest.raises(CollectiveError, match="make the job without --tags"):
            lab.communicator(job, "w0")
    finally:
        lab.remove(job)


def test_a_topology_file_says_which_switches_have_tags(tmp_path: Path) -> None:
    text = (ROOT / "sim/topologies/one-switch.yaml").read_text()
    for line, has in (("", False), ("tags: true", True), ("tags: false", False)):
        path = tmp_path / "net.yaml"
        path.write_text(re.sub(r"( +)lanes: \d+.*", rf"\g<0>\n\1{line}" if line else r"\g<0>", text, count=1))
        [switch] = read_topology(path).switches.values()
        assert switch.tags is has
    path.write_text(re.sub(r"( +)lanes: \d+.*", r"\g<0>\n\1tags: 1", text, count=1))
    with pytest.raises(TopologyError, match="tags"):
        read_topology(path)


def test_attacks_on_a_job_that_runs(lab: ShmLab, rng: random.Random) -> None:
    """Whoever has a member's port and addresses, but no key, changes no sum and no parameter; each frame is counted."""
    job = lab.luwu(["w0", "w1"], root="opt", slots=4, tags=True)
    other = lab.luwu(["w0", "w1"], root="opt", slots=4, tags=True, name="other")
    nines = [9] * LANES
    good = vector(lab.topology, job, "w0", [1] * LANES)
    attacks = [
        vector(lab.topology, job, "w0", nines, ""),
        vector(lab.topology, job, "w0", nines, rng.randbytes(16).hex()),
        vector(lab.topology, job, "w0", nines, other.stream("gradients").key),
        vector(lab.topology, job, "w0", nines)[:-8] + good[-8:],
        good[:-9] + bytes([good[-9] ^ 0x80]) + good[-8:],
    ]
    before = refused(lab)
    with lab.port("w0") as port:
        port.send(attacks)
        until = time.monotonic() + PATIENCE
        while refused(lab) < before + len(attacks) and time.monotonic() < until:
            time.sleep(0.01)
    try:
        parts = [np.array([rng.randrange(-(1 << 30), 1 << 30) for _ in range(100)], np.int32) for _ in range(2)]
        total, weights, copies = np.zeros_like(parts[0]), rng.randbytes(3000), [bytearray(3000), bytearray(3000)]
        with lab.endpoint(job, "opt") as root, lab.endpoint(job, "w0") as w0, lab.endpoint(job, "w1") as w1:
            requests = [root.pull(total), root.push(weights)]
            for worker, part, copy in zip((w0, w1), parts, copies, strict=True):
                requests += [worker.push(part), worker.pull(copy)]
            for request in requests:
                request.wait(PATIENCE)
            assert all(one.stats()["rejects"]["tag"] == 0 for one in (root, w0, w1))
        np.testing.assert_array_equal(total, parts[0] + parts[1])
        assert all(bytes(copy) == weights for copy in copies)
        assert refused(lab) == before + len(attacks)
    finally:
        lab.remove(job)
        lab.remove(other)
