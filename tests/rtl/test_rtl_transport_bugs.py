"""Bugs planted in the transport, one at a time; for each there is a test that finds it."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RULES = "test_rtl_transport_rules.py::test_"
FRAMES = "test_rtl_transport_frames.py::test_"


@dataclass(frozen=True)
class Bug:
    """In `file`, `right` becomes `wrong`; `test` must fail."""

    file: str
    right: str
    wrong: str
    test: str


BUGS = {
    "sends beyond the credit": Bug(
        "credit_gate", "newer(credit, next);", "credit != next - 32'd40;", RULES + "nothing_beyond_the_credit"
    ),
    "sends more than the window": Bug(
        "credit_gate", "next - acked < {16'd0, window}", "1'b1", RULES + "no_more_in_flight_than_the_window"
    ),
    "an old heartbeat takes the credit back": Bug(
        "ack_tracker", "wire grants = commit && pending_reg && newer(pending_credit_reg, credit_reg);",
        "wire grants = commit && pending_reg;", RULES + "nothing_beyond_the_credit",
    ),
    "believes an impossible acknowledgement": Bug(
        "ack_tracker", "impossible = newer(present_ack, next) ||", "impossible =",
        FRAMES + "each_malformed_frame_is_refused_for_its_reason",
    ),
    "resends from the end": Bug(
        "retransmitter", "stop_reg       <= acked + 32'd1;\n      recover_reg    <= next;",
        "stop_reg       <= next;\n      recover_reg    <= next;",
        RULES + "timeouts_resend_from_the_oldest_with_backoff",
    ),
    "requests begin at 0 and not at the base": Bug(
        "retransmitter", "asked_reg      <= base;", "asked_reg      <= 32'd0;",
        RULES + "a_missing_frame_is_sent_again_once",
    ),
    "the timeout does not grow": Bug(
        "retransmit_timer", "rto_reg  <= backoff;", "rto_reg  <= rto_reg;",
        RULES + "timeouts_resend_from_the_oldest_with_backoff",
    ),
    "comparisons forget the wrap": Bug(
        "serial_pkg", "return ahead != 32'd0 && !ahead[31];", "return a > b && ahead[31:0] == ahead;",
        RULES + "nothing_beyond_the_credit",
    ),
    "takes a frame twice": Bug(
        "consumer", "behind || (granted && held_present)", "behind",
        FRAMES + "random_frames_are_judged_as_the_protocol_says",
    ),
    "places begin as if they were full": Bug(
        "held_bits", "ready_reg ? hold_seq[PlaceBits] : !first_lap", "ready_reg ? hold_seq[PlaceBits] : first_lap",
        FRAMES + "each_malformed_frame_is_refused_for_its_reason",
    ),
    "does not see that senders wait": Bug(
        "heartbeat_gen", "highest == said_credit_reg", "1'b0",
        RULES + "heartbeats_each_interval_and_at_once_when_senders_wait",
    ),
    "a damaged frame counts": Bug(
        "frame_parser", "if (damaged) frame_reject", "if (1'b0) frame_reject",
        FRAMES + "each_malformed_frame_is_refused_for_its_reason",
    ),
    "the frame's own length is not looked at": Bug(
        "frame_parser", "else if (!complete) frame_reject", "else if (1'b0) frame_reject",
        FRAMES + "each_malformed_frame_is_refused_for_its_reason",
    ),
    "the checksum forgets the length": Bug(
        "header_builder", "~add(fixed_sum_reg, ip_length)", "~fixed_sum_reg", FRAMES + "scapy_reads_what_is_sent"
    ),
    "lanes leave in the host's byte order": Bug(
        "frame_sender", "PARAMETERS ? i : i ^ 3", "PARAMETERS ? i : i", FRAMES + "scapy_reads_what_is_sent"
    ),
    "half a vector of an ended stream": Bug(
        "tx_ring", "else if (take ? s_axis_tlast : !inside_reg) discard_reg", "else discard_reg",
        RULES + "a_vector_under_way_when_a_stream_ends_is_dropped_whole",
    ),
}  # fmt: skip


def finds(bug: Bug, folder: Path, seed: int) -> bool:
    """Does the bug's test fail in a copy of the sources that has it?"""
    shutil.copytree(ROOT / "rtl", folder / "rtl", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("wire", "sim", "softswitch", "tests", "p4src", "host", "pyproject.toml"):
        (folder / name).symlink_to(ROOT / name)
    source = folder / "rtl" / "transport" / f"{bug.file}.sv"
    text = source.read_text()
    assert text.count(bug.right) == 1, f"{bug.file}.sv has {bug.right!r} {text.count(bug.right)} times"
    source.write_text(text.replace(bug.right, bug.wrong))
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", f"tests/rtl/{bug.test}"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder), "CATCHMENT_SEED": str(seed)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=500,
        check=False,
    )
    assert "RtlError" not in result.stdout, result.stdout
    # An assertion in the sources ends the process.
    assert result.returncode in (0, 1) or "Assertion failed" in result.stdout, result.stdout
    return result.returncode != 0


@pytest.mark.slow
@pytest.mark.parametrize("name", BUGS)
def test_each_planted_bug_is_found(name: str, tmp_path: Path, seed: int) -> None:
    assert finds(BUGS[name], tmp_path, seed), f"nothing fails although {name}"


def test_one_planted_bug_is_found(rng: random.Random, tmp_path: Path, seed: int) -> None:
    name = rng.choice(sorted(BUGS))
    assert finds(BUGS[name], tmp_path, seed), f"nothing fails although {name}"
