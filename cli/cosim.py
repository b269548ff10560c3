"""`catchment cosim`: NICs in RTL around the compiled switch, on one clock."""

from __future__ import annotations

import random
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from catchment.cli.output import JsonOption, print_json, print_table
from catchment.controlplane.errors import ControlPlaneError
from catchment.controlplane.output_path import check_file, check_folder


class ElementType(StrEnum):
    """What the workers push."""

    FP32 = "fp32"
    FP16 = "fp16"
    BF16 = "bf16"
    INT32 = "int32"


def cosim(
    *,
    workers: Annotated[int, typer.Option(help="WorkerNICs.", min=1, max=32)] = 2,
    elements: Annotated[int, typer.Option(help="Gradients per worker and round.", min=1, max=1 << 20)] = 65536,
    rounds: Annotated[int, typer.Option(help="Rounds, up and down.", min=1)] = 2,
    dtype: Annotated[ElementType, typer.Option(help="Type of the gradients.")] = ElementType.FP32,
    loss: Annotated[float, typer.Option(help="Share of frames lost, on every link and each way.", min=0, max=0.5)] = 0,
    duplicate: Annotated[float, typer.Option(help="Share that arrives twice.", min=0, max=1)] = 0,
    reorder: Annotated[float, typer.Option(help="Share that others pass.", min=0, max=1)] = 0,
    seed: Annotated[
        int | None, typer.Option(help="Equal seeds give equal runs; random, and printed, if not given.", min=0)
    ] = None,
    pcap: Annotated[Path | None, typer.Option(help="A pcapng file that gets every frame.", dir_okay=False)] = None,
    waves: Annotated[
        Path | None, typer.Option(help="A folder that gets an FST waveform of each NIC; slow.", file_okay=False)
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """WorkerNICs and an AggNIC as Verilated RTL around luwu.p4, compared byte for byte (docs/explanation/cosim.md)."""
    from catchment.rtl.driver.errors import NicError  # noqa: PLC0415  only this verb needs the simulator
    from catchment.rtl.verilate import RtlError  # noqa: PLC0415
    from catchment.sim.cosim import CosimError, Faults  # noqa: PLC0415
    from catchment.sim.cosim.run import Order, run  # noqa: PLC0415
    from catchment.softswitch.errors import SwitchError  # noqa: PLC0415
    from catchment.wire.generated.constants import DataType  # noqa: PLC0415

    if pcap is not None:
        check_file("--pcap", pcap)  # before the NICs are built for minutes
    if waves is not None:
        check_folder("--waves", waves)
    seed = random.SystemRandom().randrange(1, 1 << 32) if seed is None else seed
    if not as_json:
        typer.echo(f"cosim: seed {seed}; the first run builds the NICs, which takes minutes")
    faults = Faults(loss=loss, duplicate=duplicate, reorder=reorder)
    order = Order(workers, elements, rounds, DataType[dtype.name], faults=faults, seed=seed, pcap=pcap, waves=waves)
    try:
        outcome = run(order)
    except (CosimError, NicError, RtlError, SwitchError, OSError) as error:
        raise ControlPlaneError(f"cosim with seed {seed}: {error}") from error
    if as_json:
        print_json({"seed": seed, **asdict(outcome)})
        return
    rows = [
        (number, f"{up.latency / 1000:.2f}", f"{down.latency / 1000:.2f}")
        for number, (up, down) in enumerate(zip(outcome.up, outcome.down, strict=True))
    ]
    print_table("push to the last byte in memory, us", ("round", "gradients", "parameters"), rows)
    frames = ", ".join(f"{count} {name}" for name, count in outcome.frames.items())
    typer.echo(
        f"equal to numpy, bit for bit; gradients at {outcome.gradient_gbps:.1f} Gb/s per worker, start and end included"
    )
    typer.echo(f"frames: {frames}; {outcome.lost} lost, {outcome.resent} sent again")
    typer.echo(f"{outcome.clocks} clocks of 4 ns, {outcome.clocks_per_second:,.0f} a second of processor time")
