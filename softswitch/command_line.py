"""Options that the programs of this folder share: what a C preprocessor takes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DefinesOption = Annotated[list[str] | None, typer.Option("-D", metavar="NAME=VALUE", help="For the preprocessor.")]
IncludeOption = Annotated[list[Path] | None, typer.Option("-I", metavar="FOLDER", help="Where #include looks.")]
