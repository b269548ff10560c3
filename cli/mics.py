"""`catchment mics`: how a model is divided over ranks."""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import Annotated

import typer

from catchment.cli.output import JsonOption, print_json, print_table
from catchment.controlplane.errors import ControlPlaneError

app = typer.Typer(help="Sharded training: plan partition groups.", no_args_is_help=True)

_UNITS = {"MiB": 1 << 20, "GiB": 1 << 30}
_MOST_NODES, _MOST_PER_NODE = 1 << 16, 1 << 8
"""Every number of ranks that a partition group could have is tried: a second or two for so many."""
_MOST = 1 << 24


def _bytes(text: str) -> int:
    """Bytes of "32GiB"."""
    found = re.fullmatch(r"(\d{1,12}(?:\.\d+)?) ?(MiB|GiB)", text)
    if found is None:
        raise typer.BadParameter(f"{text!r}: give a number of MiB or GiB, as 32GiB")
    return int(float(found[1]) * _UNITS[found[2]])


@app.callback()
def mics() -> None:
    """Sharded training: plan partition groups."""


@app.command()
def plan(
    model: Annotated[str, typer.Option(help="As BERT-10B or OPT-13B; an unknown name lists all.")],
    *,
    nodes: Annotated[int, typer.Option(help="Machines.", min=1, max=_MOST_NODES)],
    per_node: Annotated[int, typer.Option(help="Ranks of each.", min=1, max=_MOST_PER_NODE)] = 8,
    memory: Annotated[str, typer.Option(help="Of each rank, as 32GiB.")] = "32GiB",
    batch: Annotated[int, typer.Option(help="Sequences of a micro-batch.", min=1, max=_MOST)] = 8,
    sequence: Annotated[int, typer.Option(help="Tokens of a sequence.", min=1, max=_MOST)] = 512,
    prefetch: Annotated[int, typer.Option(help="Layers gathered ahead.", min=0, max=_MOST)] = 2,
    as_json: JsonOption = False,
) -> None:
    """Choose the fewest ranks that hold a model, and show what each size needs (docs/explanation/mics.md)."""
    from catchment.host.torch.sharded.errors import ShardingError  # noqa: PLC0415  only this verb needs them
    from catchment.host.torch.sharded.memory_model import GIB, choose_for  # noqa: PLC0415

    available = _bytes(memory)
    try:
        choice = choose_for(
            model, nodes * per_node, per_node, available, batch=batch, sequence=sequence, prefetch=prefetch
        )
    except ShardingError as error:
        raise ControlPlaneError(str(error)) from error
    if as_json:
        needs = [{**asdict(need), "total": need.total} for need in choice.looked_at]
        print_json({"partition_size": choice.partition_size, "usable": choice.usable, "needs": needs})
        return
    rows = []
    for need in choice.looked_at:
        parts = [f"{part / GIB:.1f}" for part in (need.states, need.layers, need.activations, need.total)]
        short = need.total - choice.usable
        rows.append((need.partition_size, *parts, "yes" if short <= 0 else f"no, by {short / GIB:.1f}"))
    title = f"{model} on {nodes} x {per_node} ranks of {memory}: partition groups of {choice.partition_size}"
    print_table(
        title, ("ranks", "states, GiB", "layers", "activations", "all", f"fits {choice.usable / GIB:.1f}"), rows
    )
