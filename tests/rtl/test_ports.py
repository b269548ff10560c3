"""The lists of AXI ports stand once, in ports.svh, and no tool is without the folder to find it in."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from catchment.rtl.sources import HEADERS, INCLUDES, modules

ONCE = re.compile(
    r"^\s*(?:input|output)\s.*_(?:awaddr|awvalid|araddr|arvalid|bvalid|rvalid),?\s*(?://.*)?$", re.MULTILINE
)


@pytest.mark.parametrize("module", modules(), ids=lambda path: path.stem)
def test_no_module_types_a_list_of_axi_ports(module: Path) -> None:
    assert not ONCE.findall(module.read_text()), "use the macros of rtl/common/ports.svh"


def test_every_header_is_found() -> None:
    folders = {path.parent for path in HEADERS}
    assert folders <= set(INCLUDES)
    included = {name for path in modules() for name in re.findall(r'^`include "(.+)"', path.read_text(), re.MULTILINE)}
    assert included == {path.name for path in HEADERS}
