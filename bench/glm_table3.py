"""The hardware's all-reduce beside the paper's 1.2 us, and its area beside Table III."""

from __future__ import annotations

from bench.report import Figure
from catchment.rtl.synth import TARGETS, measured
from catchment.sim.cosim.models import CLOCK_NS, PICOS_PER_NANO, LinkModel, SwitchModel
from catchment.sim.golden import glm_cycles as cycles
from catchment.sim.world import GAP_BYTES
from catchment.wire.generated.constants import HEADER_BYTES, HEADER_OFFSET, LANE_BYTES
from catchment.wire.generated.glm_numbers import BANKS, ENGINES_MAX

NIC_LIMIT = 40
"""Clocks that the NIC may take of an all-reduce."""
_FRAME = HEADER_OFFSET + HEADER_BYTES + BANKS * LANE_BYTES
_TRANSPORT = {"lut": 10_000, "ff": 27_000}
_ENGINES = {"lut": 188_000, "ff": 904_000, "dsp": 4096}
_WORKER = {kind: _TRANSPORT.get(kind, 0) + most for kind, most in _ENGINES.items()}
"""Table III: of the network transport, of eight engines, and of both."""


def all_reduce() -> tuple[list[Figure], list[str]]:
    """8 x int32 over 8 workers: the NIC's clocks as rtl/glm's tests measure them, links and switch by parameters."""
    link, switch = LinkModel(), SwitchModel()
    clocks = cycles.NIC_OUT_CLOCKS + cycles.NIC_BACK_CLOCKS
    nic = clocks * CLOCK_NS
    wire = (_FRAME + GAP_BYTES) * link.byte_picos / PICOS_PER_NANO
    whole = nic + 2 * (wire + link.latency_ns) + switch.pipeline_ns
    figures = [
        Figure("all-reduce of 8 x int32, 8 workers", whole / 1000, "us", "paper, V-B", 1.2, 1.0),
        Figure("the NIC's share of it", clocks, "clocks", "limit", NIC_LIMIT, 1.0),
    ]
    note = (
        f"all-reduce: NIC {cycles.NIC_OUT_CLOCKS} + {cycles.NIC_BACK_CLOCKS} clocks = {nic} ns (measured by"
        f" tests/rtl/glm/test_rtl_glm_clocks.py); twice {_FRAME} bytes at {link.gbps:.0f} Gb/s = {wire:.1f} ns,"
        f" {link.ports_ns:.0f} ns in ports and {link.cable_ns:.0f} ns of cable; {switch.pipeline_ns:.0f} ns in the"
        " switch (parameters: docs/explanation/cosim.md)"
    )
    return figures, [note]


def area() -> tuple[list[Figure], list[str]]:
    """What `make synth` has measured; else how to."""
    found = {target.top: area.row() for target in TARGETS if (area := measured(target)) is not None}
    figures: list[Figure] = []
    missing: list[str] = []
    engines = {"engine": ENGINES_MAX}
    for name, parts, paper in (
        ("rounds", {"round_client": 1}, _TRANSPORT),
        (f"{ENGINES_MAX} engines", engines, _ENGINES),
        (f"{ENGINES_MAX} engines, sums, losses", {**engines, "activations": 1, "loss_lane": BANKS}, _ENGINES),
        ("whole worker", {"glm_worker": 1}, _WORKER),
    ):
        missing += [top for top in parts if top not in found and top not in missing]
        if parts.keys() <= found.keys():
            figures += [
                Figure(
                    f"{name}: {kind.upper()}",
                    sum(n * found[top][kind] for top, n in parts.items()),
                    "",
                    "Table III",
                    value,
                    1.0,
                )
                for kind, value in paper.items()
            ]
    if not missing:
        return figures, ["area: Yosys, family xcup; modules one by one, added up"]
    command = f"python -m catchment.rtl.synth {' '.join(missing)}"
    return figures, [f"area: not measured here yet: `{command}` (minutes), then run this again"]
