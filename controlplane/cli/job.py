"""`catchment job`: who trains with whom."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from controlplane.cli.output import JsonOption, print_json, print_table
from controlplane.cli.target import TopologyOption, find_place
from controlplane.jobs import JobError, JobKind, JobPlan, deploy
from controlplane.jobs import remove as take_off

app = typer.Typer(help="Jobs on the switches of a topology.", no_args_is_help=True)

NameArgument = Annotated[str, typer.Argument(help="Name of the job.")]


@app.command("create")
def create(
    name: NameArgument,
    *,
    workers: Annotated[str, typer.Option("--workers", "-w", help="Host names, comma between: w0,w1,w2.")],
    root: Annotated[str | None, typer.Option(help="The optimizer node's host name (luwu).")] = None,
    kind: Annotated[JobKind, typer.Option(help="luwu: sums to the root, parameters back; allreduce.")] = JobKind.LUWU,
    slots: Annotated[int, typer.Option(help="Vectors in flight, a power of two.")] = 64,
    topology: TopologyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Plan a job and write its entries to the switches."""
    members = [part.strip() for part in workers.split(",") if part.strip()]
    place = find_place(topology)
    with place.store() as store, place.fabric() as fabric:
        if name in store.jobs:
            raise JobError(f"job {name} exists; remove it with `catchment job remove {name}` or take another name")
        if kind is JobKind.LUWU:
            if root is None:
                raise JobError(f"job {name}: a luwu job needs --root HOST, its optimizer node")
            job = JobPlan.luwu(
                place.topology, name=name, workers=members, root=root, slots=slots, allocator=store.allocator
            )
        else:
            if root is not None:
                raise JobError(f"job {name}: an allreduce job has no --root")
            job = JobPlan.allreduce(place.topology, name=name, workers=members, slots=slots, allocator=store.allocator)
        deploy(job, place.topology, fabric.clients)
        store.add(job)
    _print_job(job, None, as_json)


@app.command("show")
def show(
    name: NameArgument,
    host: Annotated[str | None, typer.Option(help="Only what this host's endpoint needs.")] = None,
    topology: TopologyOption = None,
    as_json: JsonOption = False,
) -> None:
    """What the members of a job need to know."""
    with find_place(topology).store() as store:
        job = store.get(name)
    _print_job(job, host, as_json)


@app.command("list")
def show_all(topology: TopologyOption = None, as_json: JsonOption = False) -> None:
    """The jobs of a topology."""
    with find_place(topology).store() as store:
        jobs = list(store.jobs.values())
    if as_json:
        print_json([_summary(job) for job in jobs])
        return
    rows = [(job.name, job.kind, ", ".join(job.workers), job.root or "-", job.slots, _generations(job)) for job in jobs]
    print_table("jobs", ("name", "kind", "workers", "root", "slots", "generations"), rows)


@app.command("remove")
def remove(
    name: NameArgument,
    force: Annotated[bool, typer.Option(help="Forget it even if its switches do not answer.")] = False,
    topology: TopologyOption = None,
) -> None:
    """Take a job off the switches."""
    place = find_place(topology)
    with place.store() as store:
        job = store.get(name)
        if not force:
            with place.fabric() as fabric:
                take_off(job, place.topology, fabric.clients)
        store.discard(name)
    typer.echo(f"job {name} is removed")


def _generations(job: JobPlan) -> str:
    return ", ".join(f"{stream.name} {stream.gen}" for stream in job.streams)


def _summary(job: JobPlan) -> dict[str, Any]:
    return {
        "name": job.name,
        "kind": str(job.kind),
        "workers": list(job.workers),
        "root": job.root,
        "lanes": job.lanes,
        "slots": job.slots,
        "members": {host: job.describe(host) for host in job.ports},
    }


def _print_job(job: JobPlan, host: str | None, as_json: bool) -> None:
    if host is not None:
        print_json(job.describe(host))
        return
    if as_json:
        print_json(_summary(job))
        return
    rows = []
    for member in job.ports:
        told = job.describe(member)
        rows.append((member, told["role"], told["wid"], ":".join(map(str, told["local"])),
                     ":".join(map(str, told["switch"]))))  # fmt: skip
    title = f"job {job.name} ({job.kind}, {job.lanes} lanes, {job.slots} slots; generations: {_generations(job)})"
    print_table(title, ("host", "role", "wid", "local", "switch"), rows)
