"""Compile a program for the embedded switch.

usage: python -m catchment.softswitch PROGRAM.p4 --p4info FILE --output FILE.so [--externs FILE.hpp]
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from google.protobuf import text_format

from catchment.softswitch.build import build
from catchment.softswitch.compiler.diagnostics import CompileError
from catchment.softswitch.compiler.preprocess import definitions
from catchment.softswitch.errors import SwitchError


def main() -> int:
    """Compile; errors go to stderr with their place in the source."""
    parser = argparse.ArgumentParser(prog="python -m catchment.softswitch", description=__doc__)
    parser.add_argument("program", type=Path)
    parser.add_argument("-D", dest="defines", metavar="NAME=VALUE", action="append", default=[])
    parser.add_argument("-I", dest="include_dirs", metavar="FOLDER", type=Path, action="append", default=[])
    parser.add_argument("--p4info", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--externs", type=Path, help="a C++ header with the externs that the program declares itself")
    options = parser.parse_args()
    try:
        defines = definitions(options.defines)
    except ValueError as error:
        parser.error(str(error))
    try:
        built = build(options.program, options.include_dirs, defines, externs=options.externs)
    except (CompileError, SwitchError) as error:
        print(error, file=sys.stderr)
        return 1
    for warning in built.warnings:
        print(warning, file=sys.stderr)
    options.p4info.write_text(text_format.MessageToString(built.p4info), encoding="utf-8")
    shutil.copyfile(built.shared_object, options.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
