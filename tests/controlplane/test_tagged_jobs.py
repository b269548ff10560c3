"""Jobs with tags: the keys that their switches and members get, who may not have them, and attacks on one that runs."""

from __future__ import annotations

import json
import logging
import random
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from model_fabric import ModelFabric

from catchment.checkout import ROOT
from catchment.controlplane.client import SwitchError
from catchment.controlplane.controller import messages
from catchment.controlplane.deployment.records import JobRecord, JobState
from catchment.controlplane.deployment.store import open_store
from catchment.controlplane.jobs import Allocator, JobError, JobGroup, JobPlan, JobRequest, deploy, plan_job
from catchment.controlplane.jobs.entries import switch_configs
from catchment.controlplane.topology import Topology, TopologyError, racks, star
from catchment.controlplane.topology.schema import read_topology
from catchment.host import Stream
from catchment.host.collectives import CollectiveError, Communicator
from catchment.host.membership import Description
from catchment.sim.golden import tags
from catchment.sim.lab.shm_lab import ShmLab
from catchment.sim.lab.traffic.frames import Sender
from catchment.wire.generated.constants import DropReason
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


def test_a_parent_speaks_as_worker_0() -> None:
    topology = tree()
    job = luwu(topology, ["w0", "w2"], tags=True)
    above = [
        entry.params["wid"]
        for branch, config in zip(job.tree, switch_configs(job, topology), strict=True)
        for entry in config.entries
        if entry.table == "tags" and entry.match["port"] == branch.up_port
    ]
    assert above
    assert set(above) == {0}


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
    rounds = star(HOSTS, program=Path("p4sgd.p4"), lanes=LANES)
    with pytest.raises(JobError, match="switch s1 is built without: write `tags: true`"):
        JobRequest("job", "slots", ["w0"], tags=True).plan(rounds, Allocator(rounds))


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


def vector(
    topology: Topology, job: JobPlan, worker: str, values: list[int], key: str | None = None, *, seq: int = 0
) -> bytes:
    """A worker's vector with the job's tag, or with that of another key; without a tag for the key ""."""
    here = topology.host(worker)
    stream = job.streams[0]
    sender = Sender.of(job.describe(worker), here.mac, topology.switch(here.link.switch).mac)
    frame = sender.vector(values, gen=stream.gen, seq=seq)
    frame[Catchment].wid = job.workers.index(worker)
    return bytes(frame) if key == "" else tags.signed_frame(bytes(frame), bytes.fromhex(key or stream.key))


@pytest.fixture(scope="module")
def lab() -> Iterator[ShmLab]:
    with ShmLab(HOSTS, lanes=LANES, slots=64, tags=True) as lab:
        yield lab


def refused(lab: ShmLab) -> int:
    return lab.client.counter("drops", DropReason.BAD_TAG)[0].packets


def until_refused(lab: ShmLab, count: int) -> None:
    until = time.monotonic() + PATIENCE
    while refused(lab) < count and time.monotonic() < until:
        time.sleep(0.01)


@pytest.mark.sampled(4)
def test_ranks_of_a_job_that_is_attacked_get_right_sums(lab: ShmLab, rng: random.Random) -> None:
    """Who has a rank's port, but no key, takes none of its slots; then the ranks sum, gather and broadcast."""
    job = lab.allreduce(["w0", "w1", "opt"], slots=4, tags=True)
    nines, before = [9] * LANES, refused(lab)
    forged = [vector(lab.topology, job, "w0", nines, "", seq=seq) for seq in range(8)]
    forged += [vector(lab.topology, job, "w0", nines, rng.randbytes(16).hex(), seq=seq) for seq in range(8)]
    with lab.port("w0") as port:
        port.send(forged)
        until_refused(lab, before + len(forged))
    parts = [np.array([rng.randrange(-(1 << 30), 1 << 30) for _ in range(500)], np.int32) for _ in job.workers]

    def member(rank: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        with lab.communicator(job, job.workers[rank], timeout=PATIENCE) as ranks:
            total, shared = np.zeros_like(parts[rank]), parts[rank].copy()
            gathered = np.zeros(len(parts) * total.size, total.dtype)
            works = [ranks.all_reduce(parts[rank], total), ranks.all_gather(parts[rank], gathered)]
            for work in [*works, ranks.broadcast(shared, root=1)]:
                work.wait(PATIENCE)
            assert ranks.stats()["forged"] == 0
            return total, gathered, shared

    try:
        with ThreadPoolExecutor(len(parts)) as pool:
            for total, gathered, shared in pool.map(member, range(len(parts))):
                np.testing.assert_array_equal(total, sum(parts))
                np.testing.assert_array_equal(gathered, np.concatenate(parts))
                np.testing.assert_array_equal(shared, parts[1])
        assert refused(lab) == before + len(forged)
    finally:
        lab.remove(job)


@pytest.mark.sampled(4)
def test_ranks_end_together_when_their_key_serves_for_no_more(lab: ShmLab, rng: random.Random) -> None:
    """Sums are right up to the last vector that the key serves for; then every rank says so by name, at once."""
    job = lab.allreduce(["w0", "w1", "opt"], slots=4, tags=True)
    calls = [[np.array([rng.randrange(-(1 << 30), 1 << 30) for _ in range(40)], np.int32) for _ in job.workers]
             for _ in range(50)]  # fmt: skip

    def member(rank: int) -> tuple[int, CollectiveError]:
        description = job.describe(job.workers[rank])
        description["sums"] |= {"key_frames": 90}
        port = f"shm:{lab.path(job.workers[rank])}"
        with Communicator.of_job(description, timeout=PATIENCE, port=port) as ranks:
            for done, parts in enumerate(calls):
                total = np.zeros_like(parts[rank])
                try:
                    ranks.all_reduce(parts[rank], total).wait(PATIENCE)
                except CollectiveError as error:
                    return done, error
                np.testing.assert_array_equal(total, sum(parts))
        raise AssertionError("the key had no end")

    try:
        with ThreadPoolExecutor(len(job.workers)) as pool:
            ends = list(pool.map(member, range(len(job.workers))))
        assert len({done for done, _ in ends}) == 1 and 5 < ends[0][0] < 18
        for _, error in ends:
            assert error.kind == "spent" and error.fatal and "90 vectors" in str(error)
            assert error.seq == 90, "the sums of all vectors before are there"
            assert "catchment job renew" in str(error.hint)
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


def test_no_error_and_no_log_shows_a_key(lab: ShmLab, caplog: pytest.LogCaptureFixture) -> None:
    """What a switch refuses is named by its key fields; the entry's parameters are the secret."""
    caplog.set_level(logging.DEBUG)
    job = lab.luwu(["w0", "w1"], root="opt", slots=4, tags=True)
    try:
        entries = [entry for config in switch_configs(job, lab.topology) for entry in config.entries]
        keyed = [entry for entry in entries if entry.table == "tags"]
        with pytest.raises(SwitchError) as taken:
            lab.client.insert(*keyed)
        with pytest.raises(JobError) as deployed:
            deploy(job, lab.topology, lab.fabric.clients)
        with pytest.raises(SwitchError) as wrong:
            lab.client.insert(replace(keyed[0], params={**keyed[0].params, "wid": 1 << 8}))
        words = [str(taken.value), str(deployed.value), str(wrong.value), caplog.text, repr(job)]
        assert str(keyed[0].match["gen"]) in words[0], "it says which entry"
        for stream in job.streams:
            secrets = {stream.key, *(text(half) for half in tags.halves(bytes.fromhex(stream.key))
                                     for text in (str, hex))}  # fmt: skip
            assert not [word for word in words for secret in secrets if secret.removeprefix("0x") in word]
    finally:
        lab.remove(job)


def test_who_may_read_a_job_file(tmp_path: Path) -> None:
    """It has the keys: the file, and what the database keeps beside it, are for their user alone."""
    topology = tree()
    with open_store(topology, tmp_path) as jobs:
        group = JobRequest("job", "luwu", ["w0", "w2"], root="opt", tags=True).plan(topology, jobs.allocator)
        jobs.put(JobRecord(group, JobState.UP))
    with open_store(topology, tmp_path) as jobs:  # another reader keeps the log and the index of the database there
        assert jobs.get("job").plans[0].streams == group.plans[0].streams
        files = [path for path in tmp_path.rglob("*") if path.is_file()]
        key = group.plans[0].streams[0].key.encode()
        assert any(key in path.read_bytes() for path in files), "the key is in none: this test tests nothing"
        assert all(path.stat().st_mode & 0o077 == 0 for path in files), files


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
        until_refused(lab, before + len(attacks))
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
