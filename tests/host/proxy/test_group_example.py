"""The group file that docs/explanation/proxies.md shows is one that clients and proxies read."""

from __future__ import annotations

import json
import re
from pathlib import Path

from catchment.checkout import ROOT
from catchment.host.proxy import ProxyGroup


def test_the_group_file_of_the_page_is_a_group(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "explanation" / "proxies.md").read_text("utf-8")
    (example,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    path = tmp_path / "group.json"
    path.write_text(example)
    facts, group = json.loads(example), ProxyGroup.read(path)
    assert group == ProxyGroup(tuple(facts["addresses"]), facts["clients"], facts["secret"].encode(), groups=2)
    assert {"/" in address for address in group.addresses} == {True, False}, "the page shows both kinds of address"
    for key in ("sync", "groups", "timeout"):
        default = getattr(ProxyGroup(("a/0",), 1, group.secret), key)
        shown = f'"{default}"' if isinstance(default, str) else f"{default:g}"
        assert re.search(rf"`{key}` \({shown}[ ,)]", page), f"the page says another default of {key}"
