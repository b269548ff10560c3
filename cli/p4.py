"""`catchment p4`: compiling switch programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from catchment.cli import p4_stf
from catchment.cli.definitions import DefineOption, IncludeOption, definitions, include_folders
from catchment.cli.externs import ExternsOption, extern_files
from catchment.cli.output import JsonOption, print_json
from catchment.controlplane.errors import ControlPlaneError
from catchment.controlplane.programs.cache import compile_for
from catchment.controlplane.topology import Target

app = typer.Typer(help="Switch programs.", no_args_is_help=True)
app.command("stf")(p4_stf.stf)


@app.command("compile")
def compile_program(
    program: Annotated[Path, typer.Argument(help="P4_16 source for v1model.")],
    target: Annotated[
        Target, typer.Option(help="What it is compiled for; bmv2 needs p4c on the PATH.")
    ] = Target.EMBEDDED,
    include: IncludeOption = None,
    define: DefineOption = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Folder for the results.")] = None,
    *,
    externs: ExternsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compile a program to P4Info and to what the target loads."""
    files = extern_files(externs, (".hpp",))
    if files and target is not Target.EMBEDDED:
        raise ControlPlaneError("--externs: only the embedded target takes externs of a program's own")
    config = compile_for(
        target,
        program,
        definitions(define),
        folder=output,
        externs=next(iter(files), None),
        include=include_folders(include),
    )
    if as_json:
        print_json({"p4info": str(config.p4info), "device_config": str(config.device_config)})
    else:
        typer.echo(f"P4Info:        {config.p4info}\ndevice config: {config.device_config}")


@app.command("run")
def run_program(
    program: Annotated[Path, typer.Argument(help="P4_16 source for v1model.")],
    packets: Annotated[list[str], typer.Argument(help="Packets in hexadecimal, or files of them, one a line.")],
    *,
    port: Annotated[int, typer.Option(help="Where the packets come in.")] = 0,
    trace: Annotated[bool, typer.Option("--trace", help="Tell each state, table, action and assignment.")] = False,
    include: IncludeOption = None,
    define: DefineOption = None,
    externs: ExternsOption = None,
) -> None:
    """Interpret a program step by step, without compiling it; tables hold what the program brings with it."""
    from catchment.softswitch.compiler.diagnostics import CompileError  # noqa: PLC0415  only this verb interprets
    from catchment.softswitch.errors import SwitchError  # noqa: PLC0415
    from catchment.softswitch.interpreter.__main__ import run  # noqa: PLC0415
    from catchment.softswitch.interpreter.errors import InterpreterError  # noqa: PLC0415

    defines, folders = definitions(define), include_folders(include)
    files = extern_files(externs, (".py",))
    try:
        lines = run(
            program,
            packets,
            port=port,
            trace=trace,
            include_dirs=folders,
            defines=defines,
            externs=next(iter(files), None),
        )
    except (CompileError, InterpreterError, SwitchError, ValueError, OSError) as error:
        raise ControlPlaneError(str(error)) from error
    for line in lines:
        typer.echo(line)
