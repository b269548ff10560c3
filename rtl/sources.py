"""Which files a simulator, a linter or a synthesizer must be given."""

from __future__ import annotations

from pathlib import Path

RTL = Path(__file__).parent
FOLDERS = ("common", "format", "transport", "hostif")
# Packages come before the modules that import them, in this order.
PACKAGES = (
    RTL.parent / "wire" / "generated" / "catchment_wire_pkg.sv",
    RTL / "common" / "keep_pkg.sv",
    RTL / "format" / "format_pkg.sv",
    RTL / "transport" / "transport_pkg.sv",
    RTL / "hostif" / "hostif_pkg.sv",
)
LINT_RULES = RTL / "lint.vlt"


def modules() -> list[Path]:
    """Every module, one a file."""
    return [path for folder in FOLDERS for path in sorted((RTL / folder).glob("*.sv")) if path not in PACKAGES]


def sources() -> list[Path]:
    """Packages, then modules."""
    return [*PACKAGES, *modules()]
