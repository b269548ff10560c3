"""Writes the generated pages of the reference.

python -m catchment.cli.reference            writes them all
python -m catchment.cli.reference --check    fails when one is stale
"""

from __future__ import annotations

import sys

from catchment.checkout import ROOT
from catchment.cli.reference.pages import PAGES


def main() -> None:
    """Write the pages, or say which are stale."""
    written = {ROOT / "docs" / "reference" / name: render() for name, render in PAGES.items()}
    if "--check" not in sys.argv[1:]:
        for page, text in written.items():
            page.write_text(text, "utf-8")
        return
    stale = [page.name for page, text in written.items() if not page.exists() or page.read_text("utf-8") != text]
    if stale:
        sys.exit(f"docs/reference/{', '.join(stale)}: stale, run python -m catchment.cli.reference")


if __name__ == "__main__":
    main()
