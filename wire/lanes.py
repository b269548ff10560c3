"""P4 code that repeats once a lane or once a worker: written by a loop, never copied by hand.

The stateful bodies are in p4src/include (`Lane`, `WorkerHeartbeat`); what is generated here only instantiates
and applies them.
"""

from __future__ import annotations

from catchment.wire.emit.layout import BANNER
from catchment.wire.frame import Frame

_TOGETHER = 8
"""A job pays for the heartbeats of its workers up to the next multiple of so many."""


def lanes_p4(count: int, lane_bits: int) -> str:
    """The vector's header `lanes_h` and the control `Lanes` that runs one `Lane` for each of `count` values."""
    guard = "CATCHMENT_LANES_P4"
    lines = [
        f"// {BANNER}",
        "// Needs `slot_t` (p4src/include/types.p4) and the control `Lane` (p4src/include/lane.p4).",
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        "header lanes_h {",
        *(f"    bit<{lane_bits}> d{i};" for i in range(count)),
        "}",
        "",
        "// Each lane of the packet meets its own register array; the packet leaves with the slot's values.",
        "control Lanes(inout lanes_h lanes, in slot_t slot) {",
        *(f"    Lane() lane{i};" for i in range(count)),
        "    apply {",
        *(f"        lane{i}.apply(lanes.d{i}, slot);" for i in range(count)),
        "    }",
        "}",
        "",
        "#ifdef TAGS",
        "// The vector in its tag (p4src/include/siphash.p4), two values in a word.",
        "control LanesHash(in lanes_h lanes, inout sip_t s) {",
        *(f"    SipWord() word{i};" for i in range(0, count, 2)),
        "    apply {",
        *(f"        word{i}.apply(lanes.d{i} ++ lanes.d{i + 1}, s);" for i in range(0, count, 2)),
        "    }",
        "}",
        "#endif",
        "",
        f"#endif  // {guard}",
        "",
    ]
    return "\n".join(lines)


def workers_p4(count: int) -> str:
    """The control `Heartbeats`: one `WorkerHeartbeat` for each of up to `count` workers, MAX_WORKERS built in."""
    guard = "CATCHMENT_WORKERS_P4"

    def guarded(index: int, line: str) -> list[str]:
        return [f"#if MAX_WORKERS > {index}", line, "#endif"] if index else [line]

    def group(first: int) -> list[str]:
        """A few workers, and with them all after these, are passed by where the job has none of them."""
        more = [f"#if MAX_WORKERS > {first}", f"        if ((hb.members >> {first}) != 0) {{"] if first else []
        workers = range(first, min(first + _TOGETHER, count))
        return more + [line for i in workers for line in guarded(i, f"        worker{i}.apply({1 << i:#x}, hb);")]

    instances = [line for i in range(count) for line in guarded(i, f"    WorkerHeartbeat() worker{i};")]
    groups = range(0, count, _TOGETHER)
    applied = [line for first in groups for line in group(first)] + ["        }", "#endif"] * (len(groups) - 1)
    lines = [
        f"// {BANNER}",
        "// Needs `heartbeat_t` (p4src/include/types.p4) and `WorkerHeartbeat` (p4src/include/heartbeat.p4).",
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        "// Updates the sender's entry and folds every member's entry into one serial minimum.",
        "control Heartbeats(inout heartbeat_t hb) {",
        *instances,
        "    apply {",
        *applied,
        "    }",
        "}",
        "",
        f"#endif  // {guard}",
        "",
    ]
    return "\n".join(lines)


def outputs(frame: Frame) -> dict[str, str]:
    """File name -> text: `lanes_N.p4` for every N in `frame.supported_lanes`, and `workers.p4`."""
    return {
        **{f"lanes_{n}.p4": lanes_p4(n, frame.lane_bits) for n in frame.supported_lanes},
        "workers.p4": workers_p4(frame.max_workers),
    }
