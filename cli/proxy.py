"""`catchment proxy`: several optimizer nodes in one training: their links, what goes to which, the step they share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from catchment.cli.output import JsonOption, print_json, print_table
from catchment.cli.seconds import seconds_option
from catchment.controlplane.errors import ControlPlaneError

if TYPE_CHECKING:
    from catchment.host.proxy import LinkCurve

app = typer.Typer(
    help="Several optimizer nodes in one training: measure them, plan, look at their common step.", no_args_is_help=True
)

GroupArgument = Annotated[Path, typer.Argument(metavar="GROUP", help="The folder in which all agree on a step.")]


class ProxyCommandError(ControlPlaneError):
    """What a profile, a plan or a group's folder said."""


@contextmanager
def _told() -> Iterator[None]:
    from catchment.host import EndpointError  # noqa: PLC0415  torch takes seconds to import
    from catchment.host.membership import MembershipError  # noqa: PLC0415
    from catchment.host.optimizer.store import StoreError  # noqa: PLC0415
    from catchment.host.proxy import ProxyError  # noqa: PLC0415

    try:
        yield
    except (ProxyError, StoreError, EndpointError, MembershipError) as error:
        raise ProxyCommandError(str(error)) from error


def _check_folder(group: Path) -> None:
    """Refuse a group's folder that is not there: of one that is empty, nothing is on all disks yet."""
    todo = "name the folder that all optimizer nodes, or proxies, of the training were given"
    try:
        there, folder = group.exists(), group.is_dir()
    except OSError as error:
        raise ProxyCommandError(f"cannot look at {group}: {error.strerror}: {todo}") from None
    if not there:
        raise ProxyCommandError(f"there is no folder {group}: {todo}")
    if not folder:
        raise ProxyCommandError(f"{group} is no folder: {todo}")


@app.command()
def profile(
    job: Annotated[Path, typer.Argument(metavar="JOBFILE", help="As `job create --json` or `job show --json` gives.")],
    host: Annotated[str, typer.Argument(help="This host's name in the job.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="File to add a worker's links to.")] = Path(
        "profile.json"
    ),
    timeout: Annotated[float, seconds_option(help="Seconds without progress before giving up.", least=0.1)] = 60.0,
    as_json: JsonOption = False,
) -> None:
    """Measure the links between workers and optimizer nodes: run it on every host of a job at once, before training."""
    from catchment.host.membership.endpoints import Endpoints  # noqa: PLC0415
    from catchment.host.proxy.job_file import members_of, openers  # noqa: PLC0415
    from catchment.host.proxy.profile import answer, measure  # noqa: PLC0415
    from catchment.host.proxy.profile_file import write_profile  # noqa: PLC0415

    with _told():
        members = members_of(job, host, ("worker", "root"))
    with _told(), Endpoints(openers(members, timeout)) as endpoints:
        found: dict[str, LinkCurve] = {}
        for label, endpoint in endpoints.items():
            if members[label].role == "root":
                answer(endpoint)
            else:
                found[label] = measure(endpoint)
        if found:
            write_profile(output, {host: found})
    rows = [(label, f"{link.latency * 1e6:.0f}", f"{link.rate / 1e6:.2f}") for label, link in found.items()]
    if as_json:
        print_json({label: link.points for label, link in found.items()})
    elif found:
        print_table(f"links of {host}", ("optimizer node", "latency, us", "MB/s"), rows)


@app.command()
def run(
    group: Annotated[Path, typer.Argument(metavar="GROUPFILE", help="What all clients and proxies are told.")],
    number: Annotated[int, typer.Argument(help="Number of this proxy in the group, from 0.")],
    job: Annotated[
        list[Path] | None,
        typer.Option("--job", help='With sync="switch": the all-reduce job of the proxies, one for each group.'),
    ] = None,
    host: Annotated[str, typer.Option(help="This host's name in these jobs.")] = "",
) -> None:
    """Be a proxy that synchronizes with others, until all clients are done."""
    from contextlib import ExitStack  # noqa: PLC0415

    from catchment.host.errors import EndpointError  # noqa: PLC0415
    from catchment.host.proxy import Proxy, ProxyError, ProxyGroup  # noqa: PLC0415
    from catchment.host.proxy.job_file import member_of  # noqa: PLC0415

    try:
        with ExitStack() as exits:
            told = ProxyGroup.read(group)
            members = [member_of(each, host, ("peer",)) for each in job or ()]
            ports = [exits.enter_context(member.open(told.timeout)) for member in members]
            exits.enter_context(Proxy(told, number, ports)).run()
    except (ProxyError, EndpointError) as error:
        raise ProxyCommandError(str(error)) from error


@app.command()
def plan(  # noqa: PLR0917
    profile: Annotated[Path, typer.Argument(metavar="PROFILE", help="What `proxy profile` wrote.")],
    layers: Annotated[str, typer.Option(help="Bytes of gradients of each layer, in forward order, by commas.")] = "",
    forward: Annotated[float, seconds_option(help="Seconds of a forward pass.")] = 0.0,
    backward: Annotated[float, seconds_option(help="Seconds of a backward pass.")] = 0.0,
    among_workers: Annotated[float, typer.Option(help="Bytes per second among the workers; --layers needs it.")] = 0.0,
    among_proxies: Annotated[float, typer.Option(help="Bytes per second among the proxies.")] = float("inf"),
    within: Annotated[float, typer.Option(help="Links that differ by this share count as equal.")] = 0.05,
    as_json: JsonOption = False,
) -> None:
    """What follows from a profile: where tensors go, how they are cut, which layers the proxies take; and why."""
    with _told():
        facts = _planned(profile, layers, (forward, backward, among_workers, among_proxies), within)
    if as_json:
        print_json(facts)
        return
    print_table(
        "tensors",
        ("client", "goes to", "because"),
        [(c, f"{r['latency']} | {r['bandwidth']}", r["reason"]) for c, r in facts["routing"].items()],
    )
    print_table("optimizer nodes", ("node", "rate", "shards of at least"), [
        (name, f"{facts['rates'][name] / 1e6:.2f} MB/s", facts["shards"][name]) for name in facts["rates"]
    ])  # fmt: skip
    if "dual" in facts:
        dual = facts["dual"]
        print_table("dual synchronization", ("what", "value"), list(dual.items()))


def _planned(profile: Path, layers: str, costs: tuple[float, float, float, float], within: float) -> dict[str, Any]:
    from catchment.host.proxy import DualCosts, ProxyError, dual_plan, partition_threshold, route  # noqa: PLC0415
    from catchment.host.proxy.profile_file import read_profile, slowest  # noqa: PLC0415

    found = read_profile(profile)
    common = slowest(found)
    routing = {client: route(links, within=within) for client, links in found.items()}
    facts: dict[str, Any] = {
        "routing": {
            client: {"threshold": r.threshold, "latency": r.latency, "bandwidth": r.bandwidth, "reason": r.reason}
            for client, r in routing.items()
        },
        "rates": {name: link.rate for name, link in common.items()},
        "shards": {name: partition_threshold(link) for name, link in common.items()},
    }
    forward, backward, among_workers, among_proxies = costs
    if layers:
        try:
            sizes = [int(size) for size in layers.split(",")]
        except ValueError:
            raise ProxyError(f"--layers {layers}: whole numbers of bytes, by commas") from None
        to_proxy = sum(link.rate for link in common.values())
        model = DualCosts(forward, backward, len(found), among_workers, among_proxies, to_proxy)
        best = dual_plan(sizes, model)
        facts["dual"] = {
            "layers by the workers": best.first,
            "layers by the proxies": len(sizes) - best.first,
            "bytes by the proxies": best.proxied,
            "best, were layers divisible": round(model.best(sum(sizes))),
            "seconds of a step": best.seconds,
            "seconds, all by the workers": model.seconds(0, sum(sizes)),
            "seconds, all by the proxies": model.seconds(sum(sizes), sum(sizes)),
        }
    return facts


@app.command()
def snapshot(group: GroupArgument, as_json: JsonOption = False) -> None:
    """The last step that all optimizer nodes, or proxies with parameters, have on disk, and whose snapshot it is."""
    from catchment.host.optimizer.store.group_commit import GroupFolder  # noqa: PLC0415
    from catchment.host.proxy.snapshots import SnapshotFolder  # noqa: PLC0415

    _check_folder(group)
    with _told():
        kept = SnapshotFolder(group).record()
        record = None if kept is not None else GroupFolder(group).record()
    if kept is not None:
        if as_json:
            print_json({"step": kept.step, "proxies": kept.proxies, "crc32": kept.crc32})
        else:
            parts = [(f"{number}", f"step-{kept.step}/proxy-{number}") for number in range(kept.proxies)]
            print_table(f"step {kept.step}", ("proxy", "its part"), parts)
        return
    votes = [] if record is None else record.votes
    rows = [
        {"node": v.root, "store": v.store, "snapshot": v.snapshot, "generation": v.generation} for v in votes
    ]  # fmt: skip
    if as_json:
        print_json({"step": None if record is None else record.step, "nodes": rows})
    else:
        title = "no step is on all disks yet" if record is None else f"step {record.step}"
        print_table(title, ("node", "store", "snapshot", "generation"), [list(row.values()) for row in rows])


@app.command()
def restore(
    group: GroupArgument,
    store: Annotated[
        list[str], typer.Option("--store", "-s", help="Devices of one node's store, by commas; repeat it for each.")
    ],
) -> None:
    """Bring the stores of all optimizer nodes back to their common step; no data moves. End the nodes first.

    Proxies with parameters need no such command: they begin with the last step that all have.
    """
    from contextlib import ExitStack  # noqa: PLC0415

    from catchment.host.optimizer.store import Store  # noqa: PLC0415
    from catchment.host.optimizer.store.group_commit import GroupFolder  # noqa: PLC0415

    _check_folder(group)
    with _told(), ExitStack() as exits:
        stores = [exits.enter_context(Store.open([Path(place) for place in each.split(",")])) for each in store]
        record = GroupFolder(group).restore(stores)
    typer.echo(f"training passes: {record.step}")
