"""Members that are missing are found from counters that stand still, and from slots that wait."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from fake_switch import RunningFake

from catchment.controlplane.client import SwitchClient
from catchment.controlplane.diagnosis import waiting as diagnosis
from catchment.controlplane.diagnosis.waiting import Missing, Waiting, diagnose, waiting_for
from catchment.controlplane.jobs import Allocator, JobPlan, deploy, plan_job
from catchment.controlplane.topology import Topology, star


def topology() -> Topology:
    return star(["w0", "w1", "w2", "opt"], program=Path("luwu.p4"), slots=64)


def job_on(client: SwitchClient) -> JobPlan:
    allocator = Allocator(topology(), next_generation=0xFFFF)
    allocator.share("s1", 8)
    job = plan_job("luwu", topology(), name="x", workers=["w0", "w1", "w2"], root="opt", slots=8, allocator=allocator)
    deploy(job, topology(), {"s1": client})
    return job


def test_members_whose_counters_stand_still(
    client: SwitchClient, fake: RunningFake, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = job_on(client)
    keys = {
        key: client.p4info.by_id(entity.table_entry.table_id).preamble.alias
        for key, entity in fake.switch.entities.items()
        if entity.WhichOneof("entity") == "table_entry"
    }
    by_port: dict[int, list[bytes]] = {}
    for key, table in keys.items():
        if table == "jobs":
            port = int.from_bytes(fake.switch.entities[key].table_entry.match[1].exact.value, "big")
            by_port.setdefault(port, []).append(key)
            fake.switch.direct[key] = 0 if port == 2 else 100
    assert {port: len(entries) for port, entries in by_port.items()} == {1: 2, 2: 2, 3: 2, 4: 2}

    def traffic(_seconds: float) -> None:
        fake.switch.direct[by_port[1][0]] += 1  # one of its two streams is enough
        fake.switch.direct[by_port[4][1]] += 1

    monkeypatch.setattr(diagnosis.time, "sleep", traffic)
    missing = diagnose(job, {"s1": client}, interval=0.3)
    assert missing == [Missing("w1", "s1", 2, 0), Missing("w2", "s1", 3, 200)]
    assert [str(one) for one in missing] == [
        "w1 (port 2 of switch s1) has never sent anything",
        "w2 (port 3 of switch s1) is silent after 200 packets",
    ]


def test_a_switch_that_does_not_answer(client: SwitchClient, fake: RunningFake) -> None:
    job = job_on(client)
    gone = threading.Event()
    client.call_when_lost(gone.set)
    fake.stop()
    assert gone.wait(60)  # a call while the connection ends has once been lost in gRPC, with its deadline
    (missing,) = diagnose(job, {"s1": client}, interval=0.01)
    assert str(missing) == "switch s1 does not answer"


def test_the_first_vector_that_waits_across_the_wrap(client: SwitchClient) -> None:
    job = job_on(client)
    gen, base = job.stream("gradients").gen, job.stream("gradients").shares[0].base
    assert base == 8

    def slot(seq: int, bitmap: int, generation: int = gen, at: int = base) -> None:
        client.write_register("tag", at + seq % 8, generation << 32 | seq)
        client.write_register("bitmap", at + seq % 8, bitmap)

    assert waiting_for(job, {"s1": client}) == []
    slot(0xFFFF_FFFD, 0b111)  # complete
    slot(0xFFFF_FFFE, 0b101)
    slot(1, 0b001)
    slot(2, 0b111)
    slot(3, 0b001, generation=5)  # what another job left there
    slot(0xFFFF_FFFC, 0b001, at=0)  # another job's slots
    (waiting,) = waiting_for(job, {"s1": client})
    registers = ("slot_tag", "slot_workers")
    assert waiting == Waiting("s1", "gradients", 0xFFFF_FFFE, ("w1",), base + 6, "vector", registers)
    assert str(waiting) == "gradients: vector 4294967294 waits for w1 at switch s1"


def test_targets_without_registers(client: SwitchClient, fake: RunningFake) -> None:
    job = job_on(client)
    fake.switch.no_registers = True
    assert waiting_for(job, {"s1": client}) == []
