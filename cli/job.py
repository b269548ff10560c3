"""`catchment job`: who trains with whom. Asks the controller where one runs, else the switches themselves."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from catchment.cli.output import JsonOption, print_json, print_table
from catchment.cli.target import Place, TopologyOption, complete_host, complete_job, find_place, patience
from catchment.controlplane.controller import messages
from catchment.controlplane.controller.operator import OperatorClient
from catchment.controlplane.deployment.fabric import Fabric
from catchment.controlplane.deployment.lifecycle import (
    JobRequest,
    deploy_job,
    keep_generations_clean,
    remove_job,
    renew_job,
    reserve_job,
)
from catchment.controlplane.deployment.records import JobRecord
from catchment.controlplane.jobs import JobError, JobKind

app = typer.Typer(help="Jobs on the switches of a topology.", no_args_is_help=True)

NameArgument = Annotated[str, typer.Argument(help="Name of the job.", autocompletion=complete_job)]


@app.command("create")
def create(
    name: Annotated[str, typer.Argument(help="Name of the job.")],
    *,
    workers: Annotated[str, typer.Option("--workers", "-w", help="Host names, comma between: w0,w1,w2.")],
    root: Annotated[str | None, typer.Option(help="The optimizer node's host name (luwu).")] = None,
    kind: Annotated[
        JobKind,
        typer.Option(
            help="luwu: sums to the root, parameters back; allreduce; slots: allreduce of few values, on p4sgd.p4."
        ),
    ] = JobKind.LUWU,
    slots: Annotated[int, typer.Option(help="Vectors in flight, a power of two.")] = 64,
    rail: Annotated[
        str | None, typer.Option(help="Rail to run on; the least busy that all members have a NIC on.")
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option(help="Takes the token that members join with, instead of the output.")
    ] = None,
    topology: TopologyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Plan a job and write its entries to the switches."""
    members = tuple(part.strip() for part in workers.split(",") if part.strip())
    request = JobRequest(name, kind, members, root, slots, rail)
    place = find_place(topology)
    token = None
    if (presence := place.controller()) is not None:
        with OperatorClient.to(presence, timeout=2 * patience()) as controller:
            reply = controller.create(request)
        job, token = _of_message(reply.job), reply.token
    else:
        job = _of_record(_create_directly(place, request))
    if token is not None and token_file is not None:
        _write_secret(token_file, token)
        token = None
    if as_json:
        print_json({**job, "token": token} if token else job)
        return
    _print_job(job)
    if token is not None:
        typer.echo(f"token: {token}")


def _create_directly(place: Place, request: JobRequest) -> JobRecord:
    with _fabric_of_clean_generations(place) as fabric:
        record = reserve_job(place.store, request, place.topology)
        return deploy_job(place.store, record, place.topology, fabric.clients)


@contextmanager
def _fabric_of_clean_generations(place: Place) -> Iterator[Fabric]:
    def reload(switch: str, _: object) -> None:
        raise JobError(
            f"the generations have run out and switch {switch} gives no access to its registers: start it afresh, "
            "or run a controller, which reloads its program"
        )

    with place.fabric() as fabric:
        keep_generations_clean(place.store, place.topology, fabric.clients, reload)
        yield fabric


@app.command("renew")
def renew(name: NameArgument, topology: TopologyOption = None, as_json: JsonOption = False) -> None:
    """Give a job new generations, for its next run: what its members were told before is void."""
    place = find_place(topology)
    if place.controller() is not None:
        raise JobError(f"a controller runs: it renews job {name} by itself when a member joins again")
    with _fabric_of_clean_generations(place) as fabric:
        record, failures = renew_job(place.store, name, place.topology, fabric.clients)
    if failures:
        raise failures[0]
    if as_json:
        print_json(_of_record(record))
        return
    _print_job(_of_record(record))


@app.command("token")
def token(
    name: NameArgument,
    *,
    revoke: Annotated[bool, typer.Option(help="Give no new one: nobody may join any more.")] = False,
    token_file: Annotated[Path | None, typer.Option(help="Takes the token, instead of the output.")] = None,
    topology: TopologyOption = None,
) -> None:
    """Give the members of a job another token to join with: the old one counts no more. Who has joined stays."""
    place = find_place(topology)
    if (presence := place.controller()) is None:
        raise JobError("tokens are a controller's; start one with `catchment controller run`")
    with OperatorClient.to(presence, timeout=2 * patience()) as controller:
        given = controller.renew_token(name, revoke=revoke)
    if given and token_file is not None:
        _write_secret(token_file, given)
    else:
        typer.echo(f"token: {given}" if given else f"nobody may join job {name} any more")


@app.command("show")
def show(
    name: NameArgument,
    host: Annotated[
        str | None, typer.Option(help="Only what this host's endpoint needs.", autocompletion=complete_host)
    ] = None,
    topology: TopologyOption = None,
    as_json: JsonOption = False,
) -> None:
    """What the members of a job need to know."""
    job = find_job(find_place(topology), name)
    if host is not None:
        if host not in job["members"]:
            raise JobError(f"host {host} is not in job {name}; in it are: {', '.join(job['members'])}")
        print_json(job["members"][host])
    elif as_json:
        print_json(job)
    else:
        _print_job(job)


@app.command("list")
def show_all(topology: TopologyOption = None, as_json: JsonOption = False) -> None:
    """The jobs of a topology."""
    place = find_place(topology)
    if (presence := place.controller()) is not None:
        with OperatorClient.to(presence, timeout=patience()) as controller:
            jobs = [_of_message(job) for job in controller.jobs()]
    else:
        jobs = [_of_record(record) for record in place.jobs().records.values()]
    if as_json:
        print_json(jobs)
        return
    rows = [
        (j["name"], j["kind"], ", ".join(j["workers"]), j["root"] or "-", _way(j), j["slots"], _generations(j),
         j["state"], j.get("trouble") or "-")
        for j in jobs
    ]  # fmt: skip
    print_table("jobs", ("name", "kind", "workers", "root", "over", "slots", "generations", "state", "trouble"), rows)


@app.command("remove")
def remove(
    name: NameArgument,
    force: Annotated[bool, typer.Option(help="Forget it even if its switches do not answer.")] = False,
    topology: TopologyOption = None,
) -> None:
    """Take a job off the switches."""
    place = find_place(topology)
    if (presence := place.controller()) is not None:
        with OperatorClient.to(presence, timeout=2 * patience()) as controller:
            controller.remove(name)
    elif force:
        remove_job(place.store, name, place.topology, None)
    else:
        with place.fabric() as fabric:
            remove_job(place.store, name, place.topology, fabric.clients)
    typer.echo(f"job {name} is removed")


def find_job(place: Place, name: str) -> dict[str, Any]:
    """A job as `job show --json` prints it.

    Raises:
        ControlPlaneError: there is no such job.
    """
    if (presence := place.controller()) is not None:
        with OperatorClient.to(presence, timeout=patience()) as controller:
            return _of_message(controller.job(name))
    return _of_record(place.jobs().record(name))


def _of_record(record: JobRecord) -> dict[str, Any]:
    return {**record.plan.describe_all(), "epoch": record.epoch, "state": str(record.state)}


def _of_message(job: Any) -> dict[str, Any]:
    return {
        "name": job.name,
        "kind": job.kind,
        "workers": list(job.workers),
        "root": job.root or None,
        "lanes": job.lanes,
        "slots": job.slots,
        "epoch": job.epoch,
        "state": job.state,
        "rail": job.rail or None,
        "tree": list(job.tree),
        "members": {member.host: messages.described(member.description) for member in job.members},
        "presence": {member.host: member.state for member in job.members},
        "trouble": job.trouble,
    }


def _generations(job: dict[str, Any]) -> str:
    description = next(iter(job["members"].values()))
    return ", ".join(f"{name} {stream['gen']}" for name, stream in description.items() if isinstance(stream, dict))


def _way(job: dict[str, Any]) -> str:
    """Its switches, top first, and its rail."""
    return " < ".join([job["tree"][0], ", ".join(job["tree"][1:])]).removesuffix(" < ") + (
        f" (rail {job['rail']})" if job["rail"] else ""
    )


def _print_job(job: dict[str, Any]) -> None:
    presence = job.get("presence", {})
    rows = [
        (host, member["role"], member["wid"], ":".join(map(str, member["local"])), ":".join(map(str, member["switch"])),
         presence.get(host, "-"))
        for host, member in job["members"].items()
    ]  # fmt: skip
    title = (
        f"job {job['name']} ({job['kind']} over {_way(job)}, {job['lanes']} lanes, {job['slots']} slots, "
        f"{job['state']}, epoch {job['epoch']}; generations: {_generations(job)})"
    )
    print_table(title, ("host", "role", "wid", "local", "switch", "presence"), rows)
    if job.get("trouble"):
        typer.echo(f"trouble: {job['trouble']}")


def _write_secret(path: Path, secret: str) -> None:
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(secret)
