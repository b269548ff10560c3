"""Draws every picture into a folder."""

from __future__ import annotations

from pathlib import Path

from catchment.demo.pictures.catalogue import PICTURES
from catchment.program import run_program


def main(folder: Path) -> None:
    """Draw what the code does, from what it does, as SVG files in FOLDER."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, draw in PICTURES.items():
        path = folder / f"{name}.svg"
        path.write_text(draw(), "utf-8")
        print(path)


if __name__ == "__main__":
    run_program(main)
