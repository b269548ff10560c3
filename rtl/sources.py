"""Which files a simulator, a linter or a synthesizer must be given."""

from __future__ import annotations

import re
from pathlib import Path

from catchment.checkout import ROOT

RTL = ROOT / "rtl"
FOLDERS = ("common", "format", "transport", "hostif", "nic", "glm", "sync")
# Packages come before the modules that import them, in this order.
PACKAGES = (
    RTL.parent / "wire" / "generated" / "catchment_wire_pkg.sv",
    RTL / "generated" / "nic_regs_pkg.sv",
    RTL / "common" / "keep_pkg.sv",
    RTL / "format" / "format_pkg.sv",
    RTL / "transport" / "serial_pkg.sv",
    RTL / "transport" / "transport_pkg.sv",
    RTL / "transport" / "tag_pkg.sv",
    RTL / "hostif" / "hostif_pkg.sv",
    RTL / "nic" / "nic_pkg.sv",
    RTL.parent / "wire" / "generated" / "glm_numbers_pkg.sv",
    RTL / "generated" / "glm_regs_pkg.sv",
    RTL / "glm" / "glm_pkg.sv",
    RTL / "generated" / "sync_regs_pkg.sv",
    RTL / "sync" / "sync_pkg.sv",
)
# What files include, by its name alone: tools search INCLUDES.
HEADERS = (RTL / "common" / "ports.svh", RTL / "common" / "parameters.svh")
INCLUDES = (RTL / "common",)
LINT_RULES = RTL / "lint.vlt"


def modules() -> list[Path]:
    """Every module, one a file."""
    return [p for folder in FOLDERS for p in sorted((RTL / folder).glob("*.sv")) if p not in PACKAGES]


def closure(top: str, extra: tuple[Path, ...] = ()) -> list[Path]:
    """What `top`, of the folders or of `extra`, is built from, directly or not: packages in their order, then modules.

    Raises:
        KeyError: there is no such module.
    """
    more = [path for folder in extra for path in sorted(folder.glob("*.sv"))]
    by_name = {path.stem: path for path in (*PACKAGES, *modules(), *more)}
    found: dict[str, Path] = {}
    open_ends = {top}
    while open_ends:
        name = open_ends.pop()
        found[name] = by_name[name]
        code = re.sub(r"//.*", "", found[name].read_text())
        words = set(re.findall(r"(\w+)::", code)) | set(re.findall(r"^\s*(\w+)\s*(?:#|\w+\s*\()", code, re.MULTILINE))
        open_ends |= words & by_name.keys() - found.keys()
    packages = [path for path in PACKAGES if path.stem in found]
    return [*packages, *sorted(path for path in found.values() if path not in PACKAGES)]
