"""Show what a program does with a packet.

PACKET is hexadecimal, or a file that holds it (`#` begins a comment; one packet a line). Tables hold what the program
brings with it. Prints what leaves, one `PORT HEX` a line.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from catchment.program import run_program
from catchment.softswitch.command_line import DefinesOption, IncludeOption
from catchment.softswitch.compiler.diagnostics import CompileError
from catchment.softswitch.compiler.frontend import check_file
from catchment.softswitch.compiler.preprocess import definitions
from catchment.softswitch.errors import SwitchError
from catchment.softswitch.interpreter.errors import InterpreterError
from catchment.softswitch.interpreter.switch import InterpretedSwitch


def packets_of(text: str) -> list[bytes]:
    """Packets in hexadecimal, or those of the file called `text`. Raises ValueError."""
    if not os.path.isfile(text):  # noqa: PTH113  Path.is_file() raises OSError where the text is too long for a name
        try:
            if packet := bytes.fromhex(text):
                return [packet]
            raise ValueError
        except ValueError:
            raise ValueError(f"{text!r} is neither a packet in hexadecimal nor a file of them") from None
    packets = []
    for number, line in enumerate(Path(text).read_text(encoding="utf-8", errors="replace").splitlines(), start=1):
        try:
            packets += [bytes.fromhex(word) for word in [line.partition("#")[0].strip()] if word]
        except ValueError:
            raise ValueError(f"{text}:{number}: not a packet in hexadecimal") from None
    if not packets:
        raise ValueError(f"{text}: no packet: give one a line, in hexadecimal")
    return packets


def run(
    source: Path,
    packets: Sequence[str],
    *,
    port: int = 0,
    trace: bool = False,
    include_dirs: Sequence[Path] = (),
    defines: dict[str, str] | None = None,
    externs: Path | None = None,
) -> list[str]:
    """Runs the packets one after the other; the lines to print. Raises CompileError, InterpreterError, ValueError."""
    switch = InterpretedSwitch(check_file(source, include_dirs, defines).program, externs=externs)
    lines: list[str] = []
    switch.on_log(lambda text: None if trace else lines.append(f"log: {text}"))
    for text in packets:
        for packet in packets_of(text):
            out = switch.inject(port, packet, lines.append if trace else None)
            if not trace:
                lines += [f"{leaves} {frame.hex()}" for leaves, frame in out]
                lines += [f"dropped: {why}" for why in switch.pipeline.drops]
    return lines


def main(
    program: Path,
    packets: Annotated[list[str], typer.Argument(metavar="PACKET", help="Hexadecimal, or a file that holds it.")],
    *,
    port: Annotated[int, typer.Option(help="Where the packets come in.")] = 0,
    trace: Annotated[bool, typer.Option("--trace", help="Print each state, table, action and assignment.")] = False,
    defines: DefinesOption = None,
    include_dirs: IncludeOption = None,
) -> int:
    """Show what a program does with packets; errors go to stderr with their place in the source.

    Tables hold what the program brings with it. Prints what leaves, one `PORT HEX` a line.
    """
    try:
        macros = definitions(defines or ())
        lines = run(program, packets, port=port, trace=trace, include_dirs=include_dirs or (), defines=macros)
    except (CompileError, InterpreterError, SwitchError, ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    run_program(main)
