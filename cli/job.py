"""`catchment job`: jobs and their members. Asks the controller where one runs, else the switches themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from catchment.cli.job_states import CUT_SHORT, states_of
from catchment.cli.job_switches import connect_each, connected, provide_generations, take_off
from catchment.cli.output import JsonOption, print_json, print_table
from catchment.cli.secret_file import secret_file
from catchment.cli.target import Place, TopologyOption, complete_host, complete_job, complete_kind, find_place, patience
from catchment.controlplane.client import SwitchClient, SwitchError
from catchment.controlplane.controller import messages
from catchment.controlplane.controller.operator import OperatorClient
from catchment.controlplane.controller.presence import Presence, wait_for
from catchment.controlplane.deployment.fabric import provide_forwarding
from catchment.controlplane.deployment.lifecycle import (
    deploy_job,
    forget_job,
    remove_job,
    remove_job_where_possible,
    renew_job,
    reserve_job,
)
from catchment.controlplane.deployment.records import JobRecord
from catchment.controlplane.jobs import JobError, JobRequest
from catchment.controlplane.jobs.kind import all_kinds
from catchment.controlplane.jobs.turn import turn
from catchment.ending_signals import ended_in_order, held_back

app = typer.Typer(help="Jobs on the switches of a topology.", no_args_is_help=True)

_TURN_PATIENCE = 6
"""Times CATCHMENT_TIMEOUT: a command that has its turn may wait for several switches that do not answer."""
_NO_TOKENS = "tokens are a controller's; start one with `catchment controller run`"
NameArgument = Annotated[str, typer.Argument(help="Name of the job.", autocompletion=complete_job)]


@app.command("create")
@ended_in_order()
def create(
    name: Annotated[str, typer.Argument(help="Name of the job.")],
    *,
    workers: Annotated[str, typer.Option("--workers", "-w", help="Host names, comma between: w0,w1,w2.")],
    root: Annotated[str | None, typer.Option(help="The optimizer node's host name (luwu).")] = None,
    roots: Annotated[
        str | None, typer.Option(help="A group: a job with each of these optimizer nodes, comma between.")
    ] = None,
    kind: Annotated[
        str,
        typer.Option(
            help="; ".join(f"{kind.name}: {kind.summary}" for kind in all_kinds()) + ".", autocompletion=complete_kind
        ),
    ] = "luwu",
    slots: Annotated[int, typer.Option(help="Vectors in flight, a power of two.")] = 64,
    rail: Annotated[
        str | None, typer.Option(help="Rail to run on; the least busy that all members have a NIC on.")
    ] = None,
    rails: Annotated[str | None, typer.Option(help="A group: a job on each of these rails, comma between.")] = None,
    grid: Annotated[
        str | None,
        typer.Option(
            help="A group: beside the job of all workers one for each block of ranks, and one for the ranks at equal "
            "places of the blocks: NAME=SIZE, comma between, from the outermost: partition=4,node=2."
        ),
    ] = None,
    stream: Annotated[
        list[str] | None, typer.Option(help="An optional stream of its kind (allreduce: control). May be repeated.")
    ] = None,
    packed: Annotated[
        bool,
        typer.Option("--packed", help="Sums of floats travel as 16-bit integers, two in a lane: half of the bytes."),
    ] = False,
    tags: Annotated[
        bool,
        typer.Option(
            "--tags", help="Frames carry tags, which nobody makes without the job's key (switches: `tags: true`)."
        ),
    ] = False,
    token_file: Annotated[
        Path | None, typer.Option(help="Takes the token that members join with, instead of the output.")
    ] = None,
    topology: TopologyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Plan a job, or a group of jobs that go together, and write its entries to the switches: all or none."""
    request = JobRequest(
        name, kind, _names(workers), root, slots, rail,
        streams=tuple(stream or ()), rails=_names(rails), roots=_names(roots), grid=_grid(grid),
        packed=packed, tags=tags,
    )  # fmt: skip
    place = find_place(topology)
    token = None
    presence = _controller(place)
    if token_file is not None and presence is None:
        raise JobError(f"--token-file {token_file}: {_NO_TOKENS}")
    if presence is not None:
        with (
            OperatorClient.to(presence, timeout=2 * patience()) as controller,
            secret_file(token_file) as write_secret,
        ):
            with _goes_on(f"makes job {name}", f"`catchment job token {name}` gives its members a token to join with"):
                reply = controller.create(request)
            job, token = _of_message(reply.job), reply.token
            if write_secret is not None:
                write_secret(token)
                token = None
    else:
        job = _of_record(_create_directly(place, request))
    if as_json:
        print_json({**job, "token": token} if token else job)
        return
    _print_job(job)
    if token is not None:
        typer.echo(f"token: {token}")


def _controller(place: Place) -> Presence | None:
    """The controller that runs; one that starts is waited for a moment, as it would not know of what is done meanwhile.

    Raises:
        ControllerError: it takes longer to start.
    """
    return wait_for(place.folder(), place.topology.name, patience=patience())


@contextmanager
def _goes_on(does: str, then: str) -> Iterator[None]:
    """Have Ctrl-C say that it stops this command alone: what a controller was asked for, it does all the same."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(f"the controller {does} all the same; {then}", err=True)
        raise


def _create_directly(place: Place, request: JobRequest) -> JobRecord:
    with _turn(place):
        provide_generations(place, request.name)
        planned = reserve_job(lambda: nullcontext(place.jobs()), request, place.topology)  # noted nowhere
        with connected(place, request.name, planned.group.switches) as clients:
            record = reserve_job(place.store, request, place.topology)
            try:
                _provide_forwarding(place, record, clients)
            except BaseException:
                forget_job(place.store, record.group.name)
                raise
            return deploy_job(place.store, record, place.topology, clients)


def _provide_forwarding(place: Place, record: JobRecord, clients: Mapping[str, SwitchClient]) -> None:
    """Have the members of a job find its switches; those of an emulated network forward since it came up."""
    for switch in record.group.switches if place.network is None else ():
        provide_forwarding(place.topology, switch, clients[switch])


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


def _grid(text: str | None) -> tuple[tuple[str, int], ...]:
    levels = []
    for level in _names(text):
        name, _, size = level.partition("=")
        if not size.isascii() or not size.isdigit():
            raise JobError(f"--grid {level}: give NAME=SIZE, the ranks in a block, as in partition=4,node=2")
        levels.append((name, int(size)))
    return tuple(levels)


@contextmanager
def _turn(place: Place) -> Iterator[None]:
    """Have the jobs to this command alone: not while another changes them, nor where a controller does."""
    with turn(place.folder(), place.topology.name, patience=_TURN_PATIENCE * patience()):
        if _controller(place) is not None:
            raise JobError(f"a controller of {place.topology.name} has started meanwhile; ask again, it will answer")
        yield


@app.command("renew")
@ended_in_order()
def renew(name: NameArgument, topology: TopologyOption = None, as_json: JsonOption = False) -> None:
    """Give a job new generations, for its next run: what its members were told before is void.

    A switch that has started anew gets all of the job, once its program is loaded. Ctrl-C waits until the switches have
    them; a second one does not.
    """
    place = find_place(topology)
    if _controller(place) is not None:
        raise JobError(f"a controller runs: it renews job {name} by itself when a member joins again")
    with _turn(place):
        stored = place.jobs().record(name)
        if stored.state in CUT_SHORT:
            raise JobError(f"job {name} has no next run: {CUT_SHORT[stored.state].format(name)}")
        if misfit := stored.group.misfit(place.topology):
            raise JobError(misfit)
        provide_generations(place, name)
        with connected(place, name, stored.group.switches) as clients:
            _provide_forwarding(place, stored, clients)
            with held_back():  # what is noted is on the switches then
                record, failures = renew_job(place.store, name, place.topology, clients)
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
    """Give the members of a job another token to join with: the old one counts no more. Members that joined stay."""
    place = find_place(topology)
    if (presence := _controller(place)) is None:
        raise JobError(_NO_TOKENS)
    with (
        OperatorClient.to(presence, timeout=2 * patience()) as controller,
        secret_file(None if revoke else token_file) as write_secret,
    ):
        given = controller.renew_token(name, revoke=revoke)
        if write_secret is not None:
            write_secret(given)
    if write_secret is None:
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
    """The jobs of a topology, and whether their switches have them."""
    place = find_place(topology)
    if (presence := place.controller()) is not None:
        with OperatorClient.to(presence, timeout=patience()) as controller:
            jobs = [_of_message(job) for job in controller.jobs()]
    else:
        stored = place.jobs()
        states = states_of(place, stored)
        jobs = [
            {**_of_record(record), "state": states[name][0], "trouble": states[name][1]}
            for name, record in stored.records.items()
        ]
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
@ended_in_order()
def remove(
    name: NameArgument,
    force: Annotated[bool, typer.Option(help="Forget it even if its switches do not answer.")] = False,
    topology: TopologyOption = None,
) -> None:
    """Take a job off the switches."""
    place = find_place(topology)
    if (presence := _controller(place)) is not None:
        with (
            OperatorClient.to(presence, timeout=2 * patience()) as controller,
            _goes_on(f"removes job {name}", "`catchment job list` shows how far it is"),
        ):
            controller.remove(name)
    elif force:
        _forget(place, name)
    else:
        _remove_directly(place, name)
    typer.echo(f"job {name} is removed")


def _remove_directly(place: Place, name: str) -> None:
    by_force = f"`catchment job remove {name} --force` takes it off the switches that answer, and forgets it"
    with _turn(place), connected(place, name, place.jobs().get(name).switches, f"; or {by_force}") as clients:
        try:
            with _told_if_cut_short(place, name):
                remove_job(place.store, name, clients)
        except SwitchError as error:
            if not error.is_silence:
                raise
            raise SwitchError(f"{error}\n{by_force}", code=error.code) from None


@contextmanager
def _told_if_cut_short(place: Place, name: str) -> Iterator[None]:
    """Have Ctrl-C say that a job is half removed, where it is."""
    try:
        yield
    except KeyboardInterrupt:
        if (record := place.jobs().records.get(name)) is not None and record.state in CUT_SHORT:
            typer.echo(f"job {name}: {CUT_SHORT[record.state].format(name)}", err=True)
        raise


def _forget(place: Place, name: str) -> None:
    """Take a job off those of its switches that answer, and forget it whatever they say."""
    with _turn(place), ExitStack() as exits:
        here = []
        for switch in place.jobs().get(name).switches:
            if switch in place.topology.switches:
                here.append(switch)
            else:
                typer.echo(
                    f"switch {switch} is not in the topology any more; what it has of job {name} stays", err=True
                )
        clients, absent = connect_each(place, here, exits)
        take_off(place, clients)
        failures = [*absent.values()]
        with _told_if_cut_short(place, name):
            failures += remove_job_where_possible(place.store, name, clients)
    for failure in failures:
        later = f"what it has of job {name} goes with the next command that changes a job on it"
        typer.echo(f"{failure}; {later}", err=True)


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
    return {**record.group.describe_all(), "epoch": record.epoch, "state": str(record.state)}


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
        **({"parts": {part.label: _of_part(part) for part in job.parts}} if job.parts else {}),
    }


def _of_part(part: Any) -> dict[str, Any]:
    return {
        "workers": list(part.workers),
        "root": part.root or None,
        "rail": part.rail or None,
        "slots": part.slots,
        "tree": list(part.tree),
        "generations": dict(part.generations),
    }


def _generations(job: dict[str, Any]) -> str:
    if "parts" in job:
        return f"of {len(job['parts'])} jobs"
    description = next(iter(job["members"].values()))
    return _numbers({name: stream["gen"] for name, stream in description.items() if isinstance(stream, dict)})


def _numbers(generations: dict[str, int]) -> str:
    return ", ".join(f"{name} {number}" for name, number in generations.items())


def _way(job: dict[str, Any]) -> str:
    """Its switches, of a group those of all its jobs, and its rail."""
    way = ", ".join(job["tree"]) if "parts" in job else _switches(job["tree"])
    return way + (f" (rail {job['rail']})" if job["rail"] else "")


def _over(part: dict[str, Any]) -> str:
    """The switches that add up for a part of a group, or the connections of its ring."""
    return f"a ring of {part['ring']}" if "ring" in part else _switches(part["tree"])


def _switches(tree: list[str]) -> str:
    """The top of a tree, and the switches below it."""
    top, *below = tree
    return " < ".join([top, ", ".join(below)]) if below else top


def _print_job(job: dict[str, Any]) -> None:
    rows = _member_rows(job)
    title = (
        f"job {job['name']} ({job['kind']} over {_way(job)}, {job['lanes']} lanes, {job['slots']} slots, "
        f"{job['state']}, epoch {job['epoch']}; generations: {_generations(job)})"
    )
    in_jobs = ["in"] if "parts" in job else []
    print_table(title, ("host", "role", "wid", "local", "switch", *in_jobs, "presence"), rows)
    if "parts" in job:
        parts = [
            (label or "all", ", ".join(part["workers"]), part["root"] or "-", part["rail"] or "-",
             _over(part), part["slots"], _numbers(part["generations"]))
            for label, part in job["parts"].items()
        ]  # fmt: skip
        columns = ("part", "workers", "root", "rail", "over", "slots", "generations")
        print_table(f"jobs of group {job['name']}", columns, parts)
    if job.get("trouble"):
        typer.echo(f"trouble: {job['trouble']}")


def _member_rows(job: dict[str, Any]) -> list[tuple[Any, ...]]:
    """A row for each member; for each of its jobs, where a group has no job of all workers."""
    presence = job.get("presence", {})
    rows: list[tuple[Any, ...]] = []
    for host, member in job["members"].items():
        whole = "parts" not in job or "role" in member
        for label, described in {"": member}.items() if whole else member["parts"].items():
            among = _parts_of(job, host) if whole else [label]
            rows.append(
                (host, described["role"], described.get("wid", "-"), _address(described, "local"),
                 _far_end(described), *([", ".join(among)] if "parts" in job else []),
                 presence.get(host, "-"))
            )  # fmt: skip
    return rows


def _parts_of(job: dict[str, Any], host: str) -> list[str]:
    return [label or "all" for label, part in job.get("parts", {}).items() if host in _members(part)]


def _members(part: dict[str, Any]) -> list[str]:
    return [*part["workers"], *([part["root"]] if part["root"] else [])]


def _far_end(description: dict[str, Any]) -> str:
    """What it sends to: its switch, or the next one of its ring."""
    return _address(description, "next" if "ring" in description else "switch")


def _address(description: dict[str, Any], end: str) -> str:
    return ":".join(map(str, description[end])) if end in description else "-"
