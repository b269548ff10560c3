"""A bug planted in the P4 program turns the comparison with the model red: the comparison can fail."""

from __future__ import annotations

import random
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from embedded_target import EmbeddedTarget
from scenarios import ROOT, SLOT_STREAMS, SLOT_TYPES, STREAMS, WORKER_TYPES, Build, Traffic, base_tables
from targets import compare

from catchment.softswitch.compiler.frontend import check_file

SCENARIOS = {"luwu": (STREAMS, WORKER_TYPES), "p4sgd": (SLOT_STREAMS, SLOT_TYPES)}


@dataclass(frozen=True)
class Bug:
    """Replace `good` by `bad` in `file` of p4src/include."""

    name: str
    file: str
    good: str
    bad: str
    program: str = "luwu"


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
    Bug(
        "a missing frame is not passed on",
        "heartbeat.p4",
        "|| (hdr.catchment.flags & FLAG_RETX) != 0) {\n                meta.event",
        ") {\n                meta.event",
    ),
    Bug("a silent worker is not answered", "heartbeat.p4", "meta.job.mode == Mode.ALLREDUCE &&", "false &&"),
    Bug("next_exp is unsigned", "exponent.p4", "(mine ^ 8w0x80) > (held ^ 8w0x80)", "mine > held"),
    Bug("EXPV is an OR", "exponent.p4", "(hdr.catchment.flags ^ FLAG_EXPV)", "(hdr.catchment.flags)"),
    Bug("the packet's wid is believed", "emissions.p4", "hdr.catchment.wid = meta.job.wid;", ""),
    Bug("a duplicate is answered to all", "emissions.p4", "to_sender(PacketType.FA)", "to_workers(PacketType.FA)"),
    Bug("the sum of a rack goes up as FA", "emissions.p4", "to_parent(PacketType.PA)", "to_parent(PacketType.FA)"),
    Bug(
        "a worker may send parameters",
        "paths.p4",
        "(1, Mode.BCAST, PacketType.PARAM)",
        "(0, Mode.BCAST, PacketType.PARAM)",
    ),
    Bug("slots are not bounded", "jobs.p4", "meta.slot.index >= SLOTS || ", ""),
    Bug("vectors are not bounded", "slot.p4", "slot.bounded == 1 && NEWER(seq, slot.furthest)", "false"),
    Bug("a slot that a far vector took is kept", "slot.p4", "|| (slot.bounded == 1 &&", "|| (false &&"),
    Bug("the bound forgets the generation", "window.p4", "held[47:32] != gen || ", ""),
    Bug("the window is one too small", "window.p4", "held[31:0] + mask", "held[31:0] + mask - 1"),
    Bug("another program of the host is let in", "jobs.p4", "hdr.udp.src_port != meta.job.src_udp", "false"),
    Bug("another's address is let in", "jobs.p4", "hdr.ipv4.src != meta.job.src_ip", "false"),
    Bug("a host speaks as another", "guard.p4", "is_bound == 1 && hdr.ipv4.src != host_ip", "false"),
    Bug("a host has another's hardware", "guard.p4", "is_bound == 1 && hdr.ethernet.src != host_mac", "false"),
    Bug("a host claims another's address", "guard.p4", "hdr.arp.sender_ip != host_ip &&", "false &&"),
    Bug(
        "another port is to blame",
        "drops.p4",
        "(standard_metadata.ingress_port ++ reason[4:0])",
        "(9w0 ++ reason[4:0])",
    ),
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
    Bug(
        "an acknowledgement opens the slot",
        "rounds.p4",
        "hdr.catchment.type == PacketType.PA, meta",
        "true, meta",
        "p4sgd",
    ),
    Bug("a late ACK is not confirmed", "rounds.p4", "meta.event = Event.CONFIRMED;", "", "p4sgd"),
    Bug(
        "a late ACK is confirmed to all",
        "answers.p4",
        "(Event.CONFIRMED, _, _, _) : to_sender(PacketType.CNF)",
        "(Event.CONFIRMED, _, _, _) : to_workers(PacketType.CNF)",
        "p4sgd",
    ),
    Bug("ACKs of all rounds count", "rounds.p4", "ack_tag.apply(", "slot_tag.apply(", "p4sgd"),
    Bug(
        "sums are asked for by ACK",
        "answers.p4",
        "PacketType.ACK, 1) : to_sender(PacketType.CNF)",
        "PacketType.ACK, 1) : to_sender(PacketType.FA)",
        "p4sgd",
    ),
    Bug(
        "a confirmation asked for goes to all",
        "answers.p4",
        "PacketType.ACK, 1) : to_sender(PacketType.CNF)",
        "PacketType.ACK, 1) : to_workers(PacketType.CNF)",
        "p4sgd",
    ),
    Bug("a rack's sum goes up as a worker's", "answers.p4", "hdr.catchment.wid = meta.job.up_wid;", "", "p4sgd"),
    Bug("a window is believed", "answers.p4", "& ~FLAG_ACKV", "", "p4sgd"),
    Bug(
        "a root may reduce",
        "round_types.p4",
        " else {\n                meta.drop = DropReason.WRONG_DIRECTION;\n            }",
        "",
        "p4sgd",
    ),
    Bug(
        "a root answers where no tree is",
        "round_types.p4",
        "meta.job.mode == Mode.LEAF\n                && (",
        "(",
        "p4sgd",
    ),
    Bug("a parent's answer ends at its leaf", "round_types.p4", "meta.event = Event.RELAYED;", "", "p4sgd"),
    Bug(
        "every mode is served",
        "round_types.p4",
        "(meta.job.mode != Mode.ALLREDUCE && meta.job.mode != Mode.LEAF)\n                   || ",
        "",
        "p4sgd",
    ),
    Bug("an ACK may be long", "round_types.p4", "|| hdr.udp.length != EMPTY_BYTES", "", "p4sgd"),
    Bug("heartbeats pass", "round_types.p4", "meta.drop = DropReason.BAD_TYPE;", "", "p4sgd"),
    Bug("slot: a duplicate is added again", "slot.p4", "slot.take = 0;", "slot.take = 32w0xffffffff;", "p4sgd"),
    Bug("slot: a fresh slot keeps its bits", "slot.p4", "held = 0;", "held = held;", "p4sgd"),
    Bug("slot: the tag forgets the generation", "slot.p4", "held[47:32] != gen || ", "", "p4sgd"),
]
SAMPLE = 2
# Each of 4000 frames.  The rarest bug shows in half of them, where eight workers of a rack have met in a slot.
TRIES = 60


def planted(bug: Bug, directory: Path) -> Path:
    """The program with `bug`, in a copy of the sources."""
    for folder in ("p4src", "wire/generated"):
        shutil.copytree(ROOT / folder, directory / folder)
    path = directory / "p4src/include" / bug.file
    text = path.read_text()
    path.write_text(text.replace(bug.good, bug.bad))
    return directory / f"p4src/{bug.program}.p4"


def shows(bug: Bug, rng: random.Random, directory: Path) -> bool:
    """Whether random traffic tells the program with `bug` from the model."""
    program = planted(bug, directory)
    build = Build(program=bug.program)
    streams, types = SCENARIOS[bug.program]
    for _ in range(TRIES):
        target = EmbeddedTarget(build, program, directory / "build")
        model = build.model()
        model.tables = base_tables(streams)
        traffic = Traffic(rng, build.lanes, streams, types)
        try:
            compare(target, model, [traffic.next() for _ in range(4000)])
        except AssertionError:
            return True
    return False


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_has_its_place(bug: Bug, tmp_path: Path) -> None:
    """Once and only once, so that nothing else changes; and what comes of it is a program."""
    assert (ROOT / "p4src/include" / bug.file).read_text().count(bug.good) == 1
    check_file(planted(bug, tmp_path), defines={k: str(v) for k, v in Build(program=bug.program).defines.items()})


def test_a_sample_of_planted_bugs_is_caught(rng: random.Random, tmp_path: Path) -> None:
    for index, bug in enumerate(rng.sample(BUGS, SAMPLE)):
        assert shows(bug, rng, tmp_path / str(index)), bug.name


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_planted_bug_is_caught(rng: random.Random, tmp_path: Path, bug: Bug) -> None:
    assert shows(bug, rng, tmp_path)
