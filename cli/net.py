"""`catchment net`: emulated networks."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from catchment.checkout import ROOT
from catchment.cli import net_switch
from catchment.cli.net_log import log_of, log_of_start, take_logs
from catchment.cli.output import JsonOption, print_json, print_table, printable
from catchment.cli.signals import woken_by
from catchment.cli.target import TopologyOption, complete_host, complete_network, several_networks
from catchment.controlplane.deployment.fabric import Fabric
from catchment.controlplane.networks import state as networks
from catchment.controlplane.networks.requests import Handler, RequestSocket
from catchment.controlplane.networks.state import NetworkError
from catchment.controlplane.programs.cache import programs_of
from catchment.controlplane.topology import Topology
from catchment.ending_signals import ended_as_by_ctrl_c, ending_signals

if TYPE_CHECKING:
    from catchment.sim.lab.mininet import MininetNetwork

app = typer.Typer(help="Networks on this machine, in namespaces (needs root).", no_args_is_help=True)
app.command("kill")(net_switch.kill)
app.command("restart")(net_switch.restart)

_UP_SECONDS = 180.0
_DOWN_SECONDS = 30.0
_NONE_UP = "no network is up; start one with `catchment net up TOPOLOGY`"
_READY = b"up\n"


@app.command("up")
def up(
    topology: Annotated[Path, typer.Argument(help="Topology file.")],
    detach: Annotated[
        bool,
        typer.Option(
            "--detach",
            "-d",
            help="Return when it is up and leave it running; what it says is in NAME.log of the run folder until "
            "`net down`.",
        ),
    ] = False,
    ready_fd: Annotated[int | None, typer.Option(hidden=True, help="Descriptor to write to when it is up.")] = None,
) -> None:
    """Bring a network up, with programs and plain forwarding on its switches; Ctrl-C ends it."""
    loaded = Topology.load(topology)
    if os.geteuid() != 0:
        raise NetworkError("an emulated network needs root: run it with sudo")
    if detach:
        _start_detached(topology, loaded.name)
        typer.echo(f"network {loaded.name} is up; `catchment net down {loaded.name}` ends it")
        return
    from catchment.sim.lab.mininet import MininetNetwork  # noqa: PLC0415  only here is Mininet needed

    if ready_fd is not None:
        os.set_inheritable(ready_fd, False)  # so that it closes when this process ends, whatever it starts
    with woken_by(*ending_signals()) as stop:
        programs = programs_of(loaded)
        with MininetNetwork(loaded, source=str(topology.resolve())) as net, ExitStack() as exits:
            with Fabric.connect(loaded, net.addresses, timeout=_UP_SECONDS) as fabric:
                fabric.push(programs)
            requests = exits.enter_context(RequestSocket(net.name))
            net.announce_ready()
            size = f"{len(loaded.switches)} switches, {len(loaded.hosts)} hosts"
            typer.echo(f"network {loaded.name} is up ({size}); logs in {net.log_folder}; Ctrl-C ends it")
            if ready_fd is not None:
                os.write(ready_fd, _READY)
                os.close(ready_fd)
            while net.watch(stop, requests.fileno()) != stop:
                requests.answer(_handler(net))
    typer.echo(f"network {loaded.name} is down")


def _handler(net: MininetNetwork) -> Handler:
    verbs = {"kill": net.kill_switch, "restart": net.restart_switch}

    def do(verb: str, switch: str) -> None:
        if verb not in verbs or switch not in net.topology.switches:
            raise NetworkError(f"network {net.name} cannot {verb} {switch}")
        verbs[verb](switch)

    return do


@app.command("down")
def down(
    name: Annotated[
        str | None,
        typer.Argument(
            help="Network name; when left out the only one that is up, or else left over.",
            autocompletion=complete_network,
        ),
    ] = None,
) -> None:
    """End a network, and remove what an earlier one of that name left behind, and its log."""
    from catchment.sim.lab.mininet.claim import Claim  # noqa: PLC0415  only here is Mininet needed
    from catchment.sim.lab.mininet.leftovers import remove_leftovers  # noqa: PLC0415

    if name is not None:
        networks.check_name(name)
    if os.geteuid() != 0:
        raise NetworkError("removing a network needs root: run it with sudo")
    if name is None:
        known = networks.known_networks()
        candidates = [each for each in known if networks.is_held(each)] or known
        if len(candidates) != 1:
            raise NetworkError(f"say which network: {', '.join(known) or 'none is up or left over'}")
        name = candidates[0]
    state = networks.read_state(name)
    ended = networks.is_held(name)
    if ended:
        if state is None:
            raise NetworkError(f"network {name} is just coming up; try again")
        os.kill(state.owner, signal.SIGTERM)
        if not networks.wait_released(name, _DOWN_SECONDS):
            raise NetworkError(f"process {state.owner} still holds network {name} after {_DOWN_SECONDS:g} s")
    with Claim.acquire(name, patience=_DOWN_SECONDS if ended else 0.0) as claim:
        removed = remove_leftovers(claim)
        networks.discard_state(name)
        logs = take_logs(name)
    if not ended:  # in order; what is in the log of one that ended otherwise may be the only word of why
        removed += [f"{log}, which says: {printable(line)}" for log, line in logs.items()]
    for what in removed:
        typer.echo(f"removed {what}")
    typer.echo(f"network {name} is down" if ended or removed else f"network {name} was not up, and left nothing behind")


@app.command("list")
def show(as_json: JsonOption = False) -> None:
    """The networks that are up, and those that were not ended properly."""
    networks.remove_dead_sockets()
    rows = []
    for name in networks.known_networks():
        state = networks.read_state(name)
        status = ("up" if state and state.ready else "coming up") if networks.is_held(name) else "left over"
        rows.append((name, status, state.owner if state else "?", state.topology if state else "?"))
    if as_json:
        print_json([dict(zip(("name", "status", "owner", "topology"), row, strict=True)) for row in rows])
    else:
        print_table("networks", ("name", "status", "owner", "topology"), rows)


@app.command("exec", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
def execute(
    host: Annotated[str, typer.Argument(help="Host name.", autocompletion=complete_host)],
    command: Annotated[list[str], typer.Argument(help="Program and arguments.")],
    topology: TopologyOption = None,
) -> None:
    """Run a program on a host; it ends with the network at the latest. Options come before the host's name."""
    from catchment.sim.lab.mininet.naming import ENVIRONMENT_MARK  # noqa: PLC0415  only here is Mininet needed

    up = networks.networks_up()
    if topology is not None and up:
        name = Topology.load(topology).name
        up = [state for state in up if state.name == name]
        if not up:
            raise NetworkError(f"network {name} is not up; start it with `catchment net up`")
    having = [state for state in up if host in state.hosts]
    if not having:
        have = ", ".join(h for state in up for h in state.hosts)
        raise NetworkError(f"no host {host!r}; there are: {have}" if have else _NONE_UP)
    if len(having) > 1:
        raise several_networks(having)
    marked = {**os.environ, ENVIRONMENT_MARK: having[0].name}  # it ends with the network at the latest
    os.execvpe("mnexec", ["mnexec", "-a", str(having[0].hosts[host]), *command], marked)


def _start_detached(topology: Path, name: str) -> None:
    """Start the owner of a network; what it says is the network's log once it is up."""
    networks.made_run_folder()
    log = log_of_start(name)
    reader, writer = os.pipe()
    command = [
        sys.executable, "-m", "catchment.cli", "net", "up", str(topology.resolve()), "--ready-fd", str(writer)
    ]  # fmt: skip
    with os.fdopen(reader, "rb") as ready:
        with os.fdopen(writer, "wb"), log.open("wb") as output:
            owner = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
                cwd=ROOT, pass_fds=[writer],
            )  # fmt: skip
        try:
            with ended_as_by_ctrl_c():
                in_time = select.select([ready], [], [], _UP_SECONDS)[0]
        except KeyboardInterrupt:  # nobody looks at the log of a network that nobody wants
            owner.terminate()
            log.unlink()
            raise
        if not in_time:
            owner.terminate()
            raise NetworkError(f"network {name} is not up after {_UP_SECONDS:g} s; see {log}")
        if ready.read() == _READY:
            log.rename(log_of(name))
            return
    code = owner.wait()
    said = log.read_text("utf-8", errors="replace").strip()
    log.unlink()
    raise NetworkError(said.removeprefix("catchment: ") or f"`net up` ended with code {code}")
