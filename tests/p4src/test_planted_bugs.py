"""A bug planted in the P4 program turns the comparison with the model red: the comparison can fail."""

from __future__ import annotations

import random
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from embedded_target import ROOT, EmbeddedTarget
from scenarios import Build, Traffic, base_tables
from targets import compare

from sim.golden.switch_model import SwitchModel

BUILD = Build(lanes=8, slots=16, max_workers=8, jobs=4)


@dataclass(frozen=True)
class Bug:
    """Replace `good` by `bad` in `file` of p4src/include."""

    name: str
    file: str
    good: str
    bad: str


BUGS = [
    Bug("a duplicate is added again", "slot.p4", "slot.take = 0;", "slot.take = 32w0xffffffff;"),
    Bug("a fresh slot keeps its bits", "slot.p4", "held = 0;", "held = held;"),
    Bug("older rounds take the slot", "slot.p4", "|| NEWER(seq, held[31:0])", "|| seq != held[31:0]"),
    Bug("sequence numbers do not wrap", "types.p4", "(((b) - (a)) > 32w0x80000000)", "((a) > (b))"),
    Bug("the tag forgets the generation", "slot.p4", "held[47:32] != gen || ", ""),
    Bug("a missing member is left out", "heartbeat.p4", "hb.complete = 0;", "hb.complete = 1;"),
    Bug("an old ack moves the entry back", "heartbeat.p4", "if (NEWER(hb.ack, held[63:32]))", "if (true)"),
    Bug(
        "the minimum is a maximum",
        "heartbeat.p4",
        "NEWER(hb.min_credit, held[31:0])",
        "NEWER(held[31:0], hb.min_credit)",
    ),
    Bug("every heartbeat is answered", "heartbeat.p4", "wid == 0", "wid != 99"),
    Bug("a missing frame is not passed on", "heartbeat.p4", "mode != Mode.ALLREDUCE", "mode == Mode.REDUCE"),
    Bug("next_exp is unsigned", "exponent.p4", "(mine ^ 8w0x80) > (held ^ 8w0x80)", "mine > held"),
    Bug("EXPV is an OR", "exponent.p4", "(hdr.catchment.flags ^ FLAG_EXPV)", "(hdr.catchment.flags)"),
    Bug("the packet's wid is believed", "emission.p4", "hdr.catchment.wid = meta.job.wid;", ""),
    Bug("a duplicate is answered to all", "emission.p4", "to_sender(PacketType.FA)", "to_workers(PacketType.FA)"),
    Bug("the sum of a rack goes up as FA", "emission.p4", "to_parent(PacketType.PA)", "to_parent(PacketType.FA)"),
    Bug(
        "a worker may send parameters",
        "jobs.p4",
        "(1, Mode.BCAST, PacketType.PARAM)",
        "(0, Mode.BCAST, PacketType.PARAM)",
    ),
    Bug("slots are not bounded", "jobs.p4", "meta.slot.index >= SLOTS || ", ""),
    Bug("fragments pass", "validate.p4", "|| hdr.ipv4.more_fragments == 1", ""),
    Bug("the checksum is not looked at", "validate.p4", "|| standard_metadata.checksum_error == 1", ""),
    Bug(
        "trailing bytes pass", "validate.p4", "standard_metadata.packet_length !=", "standard_metadata.packet_length <"
    ),
    Bug("the IPv4 checksum is not renewed", "checksum.p4", "meta.route == Route.JOB", "false"),
    Bug("the UDP checksum stays", "receivers.p4", "hdr.udp.checksum = 0;", ""),
    Bug(
        "any address is ours",
        "addresses.p4",
        "actions = { answer; NoAction; }\n        default_action = NoAction();",
        "actions = { answer; NoAction; }\n        default_action = answer(48w1);",
    ),
]
SAMPLE = 1


def shows(bug: Bug, rng: random.Random, directory: Path) -> bool:
    """Whether random traffic tells the program with `bug` from the model."""
    for folder in ("p4src", "wire/generated"):
        shutil.copytree(ROOT / folder, directory / folder)
    path = directory / "p4src/include" / bug.file
    text = path.read_text()
    assert text.count(bug.good) >= 1, f"{bug.file} no longer says {bug.good!r}"
    path.write_text(text.replace(bug.good, bug.bad))
    for _ in range(3):
        target = EmbeddedTarget(BUILD, directory / "p4src/luwu.p4", directory / "build")
        model = SwitchModel(BUILD.lanes, BUILD.slots, BUILD.max_workers, BUILD.jobs)
        model.tables = base_tables()
        traffic = Traffic(rng, BUILD.lanes)
        try:
            compare(target, model, [traffic.next() for _ in range(4000)])
        except AssertionError:
            return True
    return False


def test_a_sample_of_planted_bugs_is_caught(rng: random.Random, tmp_path: Path) -> None:
    for index, bug in enumerate(rng.sample(BUGS, SAMPLE)):
        assert shows(bug, rng, tmp_path / str(index)), bug.name


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_planted_bug_is_caught(rng: random.Random, tmp_path: Path, bug: Bug) -> None:
    assert shows(bug, rng, tmp_path)
