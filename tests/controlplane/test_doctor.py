"""What `doctor` makes of a job that hangs: stuck, slow, not read, cut off; each seen on a switch in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from types import SimpleNamespace

import pytest
from fake_switch import RunningFake
from test_diagnosis import job_on, topology

from catchment.controlplane.client import SwitchClient
from catchment.controlplane.diagnosis import doctor, groups
from catchment.controlplane.diagnosis.doctor import Finding, examine
from catchment.controlplane.diagnosis.groups import examine_group
from catchment.controlplane.jobs import Allocator, JobGroup, JobPlan, deploy, plan_job
from catchment.controlplane.topology import Topology
from catchment.wire.generated.constants import DropReason

Step = Callable[[], None]


class Traffic:
    """Counters and registers of a job in the switch's memory."""

    def __init__(self, client: SwitchClient, fake: RunningFake, job: JobPlan | None = None) -> None:
        self.client = client
        self.job = job or job_on(client)
        stream = self.job.streams[0]
        self.gen, self.base = stream.gen, stream.shares[0].base
        self.counters: dict[tuple[int, int], bytes] = {}
        self.direct = fake.switch.direct
        for key, entity in fake.switch.entities.items():
            if entity.WhichOneof("entity") != "table_entry":
                continue
            if client.p4info.by_id(entity.table_entry.table_id).preamble.alias == "jobs":
                gen, port = (int.from_bytes(m.exact.value, "big") for m in entity.table_entry.match)
                self.counters[gen, port] = key
                self.direct[key] = 7

    def send(self, *ports: int, gradients: bool = True) -> None:
        for (gen, port), key in self.counters.items():
            if port in ports and (gen == self.gen) is gradients:
                self.direct[key] += 1

    def vector(self, seq: int, bitmap: int) -> None:
        self.client.write_register("tag", self.base + seq % 8, self.gen << 32 | seq)
        self.client.write_register("bitmap", self.base + seq % 8, bitmap)


def seen(
    traffic: Traffic,
    monkeypatch: pytest.MonkeyPatch,
    step: Step,
    absent: dict[str, str] | None = None,
    *,
    network: Topology | None = None,
) -> list[Finding]:
    """The findings when `step` happens at every moment that it waits."""
    monkeypatch.setattr(doctor.time, "sleep", lambda seconds: step())
    return examine(traffic.job, network or topology(), {"s1": traffic.client}, interval=1.0, absent=absent)


def real_switch() -> Topology:
    """The same hosts on a switch of nobody's emulated network."""
    network = topology()
    return replace(network, switches={"s1": replace(network.switch("s1"), grpc="unix:run/s1")})


@pytest.fixture
def traffic(client: SwitchClient, fake: RunningFake) -> Traffic:
    return Traffic(client, fake)


def test_a_vector_that_waits_all_the_time(traffic: Traffic, monkeypatch: pytest.MonkeyPatch) -> None:
    traffic.vector(5, 0b101)
    (found,) = seen(traffic, monkeypatch, lambda: traffic.send(1, 2, 3, 4, gradients=False))
    assert found.subject == "w1"
    assert "vector 5 waits at s1 for w1" in found.what
    assert "its program does not push" in found.todo


def test_a_member_that_is_slow(traffic: Traffic, monkeypatch: pytest.MonkeyPatch) -> None:
    seqs = iter(range(3, 99))
    traffic.vector(2, 0b101)

    def step() -> None:
        traffic.send(1, 2, 3, 4)
        seq = next(seqs)
        traffic.vector(seq - 1, 0b111)
        traffic.vector(seq, 0b101)

    (found,) = seen(traffic, monkeypatch, step)
    assert found.subject == "w1"
    assert "is slow, not stuck" in found.todo


def test_a_job_that_runs(traffic: Traffic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every vector waits for somebody for a moment, each time for somebody else."""
    seqs = iter(range(3, 99))

    def step() -> None:
        traffic.send(1, 2, 3, 4)
        seq = next(seqs)
        traffic.vector(seq - 1, 0b111)
        traffic.vector(seq, 0b111 & ~(1 << seq % 3))

    assert seen(traffic, monkeypatch, step) == []


def test_a_root_that_does_not_take_its_sums(traffic: Traffic, monkeypatch: pytest.MonkeyPatch) -> None:
    traffic.vector(5, 0b111)
    (found,) = seen(traffic, monkeypatch, lambda: traffic.send(1, 2, 3, 4))
    assert found.subject == "opt"
    assert "every vector up to 5 is complete" in found.what
    assert "does not acknowledge them" in found.what
    assert found.certain


def test_frames_of_a_run_after_the_jobs_own(
    traffic: Traffic, monkeypatch: pytest.MonkeyPatch, fake: RunningFake
) -> None:
    """What the second run of a job sends is old: the switch holds the first one's later vectors."""
    traffic.vector(5, 0b111)
    drops = fake.switch.counters

    def step() -> None:
        traffic.send(1, 2, 3, 4)
        drops[DropReason.OLD_SEQ] = drops.get(DropReason.OLD_SEQ, 0) + 3

    found = [one for one in seen(traffic, monkeypatch, step) if "OLD_SEQ" in one.what]
    assert [(one.subject, one.certain) for one in found] == [("s1", False)]
    assert f"catchment job renew {traffic.job.name}" in found[0].todo

    def moving() -> None:
        step()
        traffic.vector(drops[DropReason.OLD_SEQ], 0b111)

    assert not [one for one in seen(traffic, monkeypatch, moving) if "OLD_SEQ" in one.what]


def test_late_copies_in_one_job_of_a_group_while_another_goes_on(
    client: SwitchClient, fake: RunningFake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rail that stood in for another one has vectors of then; what is late on its switch is the other jobs'."""
    allocator = Allocator(topology())
    workers = ["w0", "w1", "w2"]
    plans = {label: plan_job("allreduce", topology(), name=f"sums/{label}", workers=workers, slots=8,
                             allocator=allocator) for label in ("a", "a.for.b")}  # fmt: skip
    for plan in plans.values():
        deploy(plan, topology(), {"s1": client})
    goes_on, idle = (Traffic(client, fake, plan) for plan in plans.values())
    drops, seqs = fake.switch.counters, count()
    idle.vector(5, 0b111)

    def stands() -> None:
        goes_on.send(1, 2, 3)
        idle.send(1, 2, 3)
        drops[DropReason.OLD_SEQ] = 2 * drops.get(DropReason.OLD_SEQ, 0) + 1  # each job is told another number

    def moving() -> None:
        stands()
        goes_on.vector(next(seqs), 0b111)

    def old(step: Step) -> list[Finding]:
        monkeypatch.setattr(groups, "Event", lambda: SimpleNamespace(wait=lambda seconds: step(), set=bool))
        monkeypatch.setattr(groups, "_MOST_AT_ONCE", 1)
        found = examine_group(JobGroup("sums", plans), topology(), {"s1": client}, interval=1.0)
        return [one for one in found if "OLD_SEQ" in one.what]

    assert old(moving) == []
    (found,) = old(stands)  # once for the switch
    assert "`catchment job renew sums`" in found.todo, "the verb takes no part of a group"


def test_late_copies_of_other_jobs(traffic: Traffic, monkeypatch: pytest.MonkeyPatch, fake: RunningFake) -> None:
    """The counter is the switch's: it says nothing of a job that sends no vectors, or has none there."""
    drops = fake.switch.counters

    def late() -> None:
        drops[DropReason.OLD_SEQ] = drops.get(DropReason.OLD_SEQ, 0) + 1

    def late_beside() -> None:
        traffic.send(1, 2, 3, 4)
        late()

    assert not [one for one in seen(traffic, monkeypatch, late_beside) if "OLD_SEQ" in one.what]
    traffic.vector(5, 0b111)
    (alone,) = [one for one in seen(traffic, monkeypatch, late_beside) if "OLD_SEQ" in one.what]
    assert "others" not in alone.what
    assert not [one for one in seen(traffic, monkeypatch, late) if "OLD_SEQ" in one.what]


def test_a_remark_on_late_copies_says_that_other_jobs_send_too(
    traffic: Traffic, client: SwitchClient, monkeypatch: pytest.MonkeyPatch, fake: RunningFake
) -> None:
    held = [share for stream in traffic.job.streams for share in stream.shares]
    used = [stream.gen for stream in traffic.job.streams]
    allocator = Allocator(topology(), held, used_generations=used)
    other = plan_job("allreduce", topology(), name="other", workers=["w0", "w1"], slots=8, allocator=allocator)
    deploy(other, topology(), {"s1": client})
    beside, drops = Traffic(client, fake, other), fake.switch.counters
    traffic.vector(5, 0b111)

    def both() -> None:
        traffic.send(1, 2, 3, 4)
        beside.send(1, 2)
        drops[DropReason.OLD_SEQ] = drops.get(DropReason.OLD_SEQ, 0) + 1

    (found,) = [one for one in seen(traffic, monkeypatch, both) if "OLD_SEQ" in one.what]
    assert "of this job or of others that send there" in found.what


def test_commands_on_a_host_are_those_of_its_network(
    traffic: Traffic, monkeypatch: pytest.MonkeyPatch, fake: RunningFake
) -> None:
    """`net exec` knows the hosts of an emulated network, and no others."""
    drops = fake.switch.counters

    def step() -> None:
        traffic.send(1, 3, 4)
        for cell in (DropReason.WRONG_UDP_PORT, 3 * 32 + DropReason.WRONG_UDP_PORT):
            drops[cell] = drops.get(cell, 0) + 1

    emulated = {one.subject: one.todo for one in seen(traffic, monkeypatch, step)}
    assert "(`catchment net exec w1 ip link`)" in emulated["w1"]
    assert "find it with `catchment net exec w2 ss -ulpn`," in emulated["w2"]
    real = {one.subject: one.todo for one in seen(traffic, monkeypatch, step, network=real_switch())}
    assert "(`ip link` on w1)" in real["w1"]
    assert "find it with `ss -ulpn` on w2," in real["w2"]


def test_nothing_more_is_sent(traffic: Traffic, monkeypatch: pytest.MonkeyPatch) -> None:
    """No credit, or no work: the switch cannot tell."""
    traffic.vector(5, 0b111)

    def step() -> None:
        traffic.send(1, 2, 3, gradients=False)
        traffic.send(4)

    (found,) = seen(traffic, monkeypatch, step)
    assert (found.subject, found.certain) == ("opt", False)
    assert "gives them no credit" in found.todo


def test_the_silent_and_the_absent(traffic: Traffic, monkeypatch: pytest.MonkeyPatch) -> None:
    found = seen(traffic, monkeypatch, lambda: traffic.send(1, 4), absent={"w1": "lost", "w0": "left"})
    said = {one.subject: f"{one.what} {one.todo}" for one in found}
    assert "is lost, says the controller, and sends nothing" in said["w1"]
    assert "sends nothing" in said["w2"]
    assert "controller" not in said["w2"]
    assert "has left, says the controller" in said["w0"]


def test_a_switch_without_a_connection(traffic: Traffic) -> None:
    (found,) = examine(traffic.job, topology(), {}, interval=0.0)
    assert found.what.startswith("switch s1 does not answer")


def test_who_sends_in_another_s_name_is_named_and_nobody_else(
    traffic: Traffic, monkeypatch: pytest.MonkeyPatch, fake: RunningFake
) -> None:
    """w1 has an old generation and is no attacker; the root's host sends the rest."""
    counters = fake.switch.counters
    guilty = {
        (2, DropReason.UNKNOWN_JOB): "w1",
        (4, DropReason.FORGED_SOURCE): "opt",
        (4, DropReason.WRONG_UDP_PORT): "opt",
        (3, DropReason.BEYOND_WINDOW): "w2",
    }
    counters[1 * 32 + DropReason.FORGED_SOURCE] = 5  # long ago, by w0
    counters[DropReason.FORGED_SOURCE] = 5

    def step() -> None:
        traffic.send(1, 2, 3, 4)
        for port, reason in guilty:
            for cell in (reason, port * 32 + reason):
                counters[cell] = counters.get(cell, 0) + 1

    found = [one for one in seen(traffic, monkeypatch, step) if "counter drops" in one.what]
    assert len(found) == len(guilty)
    for (port, reason), name in guilty.items():
        (one,) = [one for one in found if f"drops[{reason.name}]" in one.what]
        assert one.subject == name and f"came from {name} on port {port} " in one.what
