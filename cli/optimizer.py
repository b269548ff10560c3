"""`catchment optimizer`: the store of an out-of-core optimizer node."""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from catchment.cli.output import JsonOption, print_json, print_table
from catchment.controlplane.errors import ControlPlaneError
from catchment.plain_console import plain_console

if TYPE_CHECKING:
    from catchment.host.layers import LayerTable
    from catchment.host.optimizer.store import ModelState, Store

Choice = TypeVar("Choice", bound=StrEnum)

app = typer.Typer(help="Model states on disk: look at them, check them, bring them in and out.", no_args_is_help=True)

Places = Annotated[
    list[Path], typer.Argument(metavar="STORE...", help="All devices of the store: folders, files or block devices.")
]
PlaceOptions = Annotated[
    list[Path], typer.Option("--store", "-s", help="A device of the store; repeat it for each, all in any order.")
]


class OptimizerError(ControlPlaneError):
    """What the store said."""


@contextmanager
def _store_errors() -> Iterator[None]:
    """Errors of the store become errors of the command."""
    from catchment.host.layers import TrainingError  # noqa: PLC0415  torch takes seconds to import
    from catchment.host.optimizer.store import StoreError  # noqa: PLC0415

    try:
        yield
    except (StoreError, TrainingError) as error:
        raise OptimizerError(str(error)) from error


@contextmanager
def _opened(places: list[Path], *, read_only: bool = True) -> Iterator[Store]:
    from catchment.host.optimizer.store import Store  # noqa: PLC0415

    with _store_errors(), Store.open(places, read_only=read_only) as store:
        yield store


@app.command()
def inspect(places: Places, as_json: JsonOption = False) -> None:
    """What a store holds: model, types, how far the training is, snapshots, space."""
    with _opened(places) as store:
        facts = _facts(store)
    if as_json:
        print_json(facts)
        return
    layers = facts.pop("layers")
    snapshots = facts.pop("snapshots")
    print_table("store", ("what", "value"), list(facts.items()))
    print_table(
        "layers", ("layer", "name", "parameters", "tensors", "plane", "steps"), [list(x.values()) for x in layers]
    )
    print_table("snapshots", ("name", "training passes"), [list(x.values()) for x in snapshots])


def _facts(store: Store) -> dict[str, Any]:
    geometry, space = store.geometry, store.space
    return {
        "identity": store.identity,
        "devices": geometry.devices,
        "optimizer": geometry.rule,
        "parameter type": geometry.parameters,
        "moment type": geometry.moments,
        "parameters": geometry.table.numel,
        "table digest": f"{geometry.table.digest:#010x}",
        "generation": store.generation,
        "training passes": store.state.trained,
        "bytes of the model": space.plane_bytes,
        "bytes on disk": space.plane_bytes * space.planes,
        "limits": "; ".join(store.limits) or "none",
        "layers": [
            {
                "layer": layer.index,
                "name": layer.name,
                "parameters": layer.numel,
                "tensors": len(layer.tensors),
                "plane": store.state.layers[layer.index].plane,
                "steps": max(store.state.layers[layer.index].steps),
            }
            for layer in geometry.table
        ],
        "snapshots": [{"name": name, "trained": state.trained} for name, state in store.snapshots.items()],
    }


@app.command()
def verify(places: Places, as_json: JsonOption = False) -> None:
    """Read everything and compare the checksums; exit code 3 if anything is damaged."""
    from catchment.host.optimizer.store.check import check  # noqa: PLC0415

    with _opened(places) as store, _progress("reading", len(store.geometry.table)) as on_layer:
        damage = check(store, lambda state, layer: on_layer(layer) if state == "present" else None)
    if as_json:
        rows = [{"state": d.state, "layer": d.layer, "section": d.section, "message": d.message} for d in damage]
        print_json({"damage": rows})
    else:
        print_table(
            "damage",
            ("state", "layer", "section", "message"),
            [(d.state, d.layer, d.section, d.message) for d in damage],
        )
    if damage:
        raise typer.Exit(3)


@app.command("export")
def export_model(
    folder: Annotated[Path, typer.Argument(help="An empty or new folder.")],
    store: PlaceOptions,
    snapshot: Annotated[str | None, typer.Option(help="A snapshot instead of the present state.")] = None,
    moments: Annotated[bool, typer.Option(help="The optimizer's moments as well, to train on elsewhere.")] = False,
    as_dcp: Annotated[
        bool, typer.Option("--dcp", help="A checkpoint of torch.distributed.checkpoint, moments and groups included.")
    ] = False,
) -> None:
    """Write the fp32 weights as safetensors, a file a layer with an index, or as a torch checkpoint (DCP)."""
    with _opened(store) as opened, _progress("writing", len(opened.geometry.table)) as on_layer:
        state = _chosen(opened, snapshot)
        if as_dcp:
            from catchment.host.optimizer.dcp import export_dcp  # noqa: PLC0415

            written = export_dcp(opened, folder, state=state, on_layer=on_layer)
        else:
            from catchment.host.optimizer.store.interchange import export  # noqa: PLC0415

            written = export(opened, folder, state=state, moments=moments, on_layer=on_layer)
    typer.echo(f"{written}")


@app.command("import")
def import_safetensors(  # noqa: PLR0917
    source: Annotated[
        Path,
        typer.Argument(help="A .safetensors file, a folder of them with or without an index, or a DCP checkpoint."),
    ],
    store: PlaceOptions,
    layer: Annotated[
        list[str] | None, typer.Option("--layer", help="Names of the layers as they run, one each.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="MODULE:FUNCTION that makes the model which workers attach; decides the layers exactly."),
    ] = None,
    optimizer: Annotated[str, typer.Option(help="adam (AdamW too) or sgd.")] = "adam",
    parameters: Annotated[str, typer.Option(help="Type on the wire: bf16 or fp32.")] = "bf16",
    moments: Annotated[str, typer.Option(help="Type of the moments: fp32 or bf16.")] = "fp32",
    overwrite: Annotated[bool, typer.Option(help="Replace what is there: a store, or anything else.")] = False,
) -> None:
    """Make a store from safetensors, or from a checkpoint of torch.distributed.checkpoint."""
    from catchment.host.checkpoint_reader import METADATA  # noqa: PLC0415
    from catchment.host.optimizer.dcp import look_at_dcp  # noqa: PLC0415
    from catchment.host.optimizer.store import Precision, Rule  # noqa: PLC0415
    from catchment.host.optimizer.store.importing import import_model  # noqa: PLC0415
    from catchment.host.optimizer.store.interchange import look_at  # noqa: PLC0415

    with _store_errors():
        kinds = (
            _one_of(Rule, optimizer, "--optimizer"),
            _one_of(Precision, parameters, "--parameters"),
            _one_of(Precision, moments, "--moments"),
        )
        table = None if model is None else _table_of(model, layer)
        found = (look_at_dcp if (source / METADATA).exists() else look_at)(source, layer or (), table)
        with (
            _progress("importing", len(found.table)) as on_layer,
            import_model(
                found,
                store,
                rule=kinds[0],
                parameters=kinds[1],
                moments=kinds[2],
                overwrite=overwrite,
                on_layer=on_layer,
            ) as made,
        ):
            names = ", ".join(spec.name for spec in made.geometry.table)
    typer.echo(f"{made.geometry.table.numel:,} parameters in {len(made.geometry.table)} layers: {names}")


@app.command()
def snapshot(name: Annotated[str, typer.Argument(help="Its name.")], store: PlaceOptions) -> None:
    """Keep the present state by name; costs no space until the training goes on."""
    with _opened(store, read_only=False) as opened:
        opened.take_snapshot(name)


@app.command()
def snapshots(places: Places, as_json: JsonOption = False) -> None:
    """The snapshots of a store, oldest first."""
    with _opened(places) as store:
        rows = [{"name": name, "trained": state.trained} for name, state in store.snapshots.items()]
    if as_json:
        print_json({"snapshots": rows})
        return
    print_table("snapshots", ("name", "training passes"), [list(row.values()) for row in rows])


@app.command()
def prune(store: PlaceOptions, keep: Annotated[int, typer.Option(min=0, help="The newest so many stay.")] = 2) -> None:
    """Forget all snapshots but the newest; their space serves later steps."""
    with _opened(store, read_only=False) as opened:
        names = list(opened.snapshots)
        for name in names[: max(0, len(names) - keep)]:
            opened.drop_snapshot(name)
            typer.echo(f"dropped {name}")


@app.command()
def restore(name: Annotated[str, typer.Argument(help="Name of a snapshot.")], store: PlaceOptions) -> None:
    """Make a snapshot the present state; no data moves."""
    with _opened(store, read_only=False) as opened:
        opened.restore_snapshot(name)
        typer.echo(f"training passes: {opened.state.trained}")


@app.command()
def drop(name: Annotated[str, typer.Argument(help="Name of a snapshot.")], store: PlaceOptions) -> None:
    """Forget a snapshot."""
    with _opened(store, read_only=False) as opened:
        opened.drop_snapshot(name)


def _one_of(kinds: type[Choice], text: str, option: str) -> Choice:
    try:
        return kinds(text)
    except ValueError as error:
        raise typer.BadParameter(f"{option} {text}: give one of {', '.join(kinds)}") from error


def _table_of(made_by: str, layers: list[str] | None) -> LayerTable:
    import torch  # noqa: PLC0415

    from catchment.host.torch import layers_of, table_of  # noqa: PLC0415

    module, _, function = made_by.partition(":")
    if not module or not function or module.startswith("."):
        raise typer.BadParameter(f"--model {made_by}: name MODULE:FUNCTION, as models:make")
    sys.path.insert(0, "")  # as `python -m` does
    try:
        make = getattr(importlib.import_module(module), function)
        if isinstance(make, torch.nn.Module) or not callable(make):
            raise ValueError(f"{function} is no function")
    except (ImportError, AttributeError, ValueError) as error:
        raise typer.BadParameter(f"--model {made_by}: {error}; name MODULE:FUNCTION") from error
    except Exception as error:  # a user's module may raise anything
        raise OptimizerError(f"--model {made_by}: {_in_words(error)}; its module is imported first") from error
    finally:
        sys.path.remove("")
    try:
        with torch.device("meta"):
            made = make()
    except Exception as error:  # a user's function may raise anything
        raise OptimizerError(
            f"--model {made_by}: {_in_words(error)}; it is called without arguments, its tensors on torch's device meta"
        ) from error
    if not isinstance(made, torch.nn.Module):
        raise typer.BadParameter(f"--model {made_by}: it makes {type(made).__name__}, no torch.nn.Module")
    return table_of(layers_of(made, layers or None))


def _in_words(error: Exception) -> str:
    """An exception of a user's code, and where that is."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    where = "" if isinstance(error, SyntaxError) else f" at {last.filename}:{last.lineno}"  # which has it in its words
    return f"{type(error).__name__}{where}: {error}"


def _chosen(store: Store, snapshot: str | None) -> ModelState:
    from catchment.host.optimizer.store import StoreError  # noqa: PLC0415

    if snapshot is None:
        return store.state
    if snapshot not in store.snapshots:
        there = ", ".join(store.snapshots) or "none"
        raise StoreError(f"there is no snapshot {snapshot!r}", kind="argument", hint=f"there are: {there}")
    return store.snapshots[snapshot]


@contextmanager
def _progress(what: str, layers: int) -> Iterator[Any]:
    from rich.progress import Progress  # noqa: PLC0415

    with Progress(console=plain_console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=layers)
        yield lambda layer: bar.update(task, completed=layer + 1)
