"""`catchment capture`: the frames at switch ports and hosts, for Wireshark."""

from __future__ import annotations

import select
import shlex
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from catchment.checkout import ROOT
from catchment.cli.seconds import seconds_option
from catchment.cli.signals import woken_by
from catchment.cli.tap import CaptureError, Listener, Tap, switch_port_taps
from catchment.cli.target import Place, TopologyOption, find_place, interface_of
from catchment.controlplane.diagnosis.pcapng import INBOUND, LONGEST_SNAP, OUTBOUND, PcapngWriter
from catchment.controlplane.topology import Host
from catchment.ending_signals import ending_signals

_IN_MEMORY = "frames pass shared memory there (`shm` in the topology), where nobody can listen"
DISSECTOR = ROOT / "wire" / "generated" / "catchment.lua"


def capture(
    where: Annotated[
        list[str],
        typer.Argument(metavar="SWITCH:PORT|SWITCH|HOST|IFACE=NAME...", help="Ports, all ports of a switch, hosts, or "
                       "any interface of this machine."),
    ],
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="pcapng file; - for the output.")] = Path(
        "capture.pcapng"
    ),
    count: Annotated[int | None, typer.Option("--count", "-c", help="End after so many frames.", min=1)] = None,
    seconds: Annotated[float | None, seconds_option("--seconds", "-s", help="End after so long.")] = None,
    snap: Annotated[int, typer.Option(help="Bytes of each frame to keep; 0: all.", min=0, max=LONGEST_SNAP)] = 0,
    topology: TopologyOption = None,
) -> None:  # fmt: skip
    """Write what passes to a file until Ctrl-C: `capture s1:1 w0 -o run.pcapng`.

    Each place is an interface of the file, and each frame says which way it went. Wireshark shows our header with the
    dissector: `wireshark -X lua_script:wire/generated/catchment.lua run.pcapng`, or `... -k -i -` for `-o -`.
    """
    names: list[str] = []
    taps: list[Tap] = []
    for word in where:
        for name, found in _taps(word, topology, len(names)):
            names.append(name)
            taps += found
    with ExitStack() as stack:
        wake = stack.enter_context(woken_by(*ending_signals()))
        listeners = [stack.enter_context(Listener(tap)) for tap in taps]
        out: BinaryIO = sys.stdout.buffer if str(output) == "-" else stack.enter_context(_create(output))
        writer = PcapngWriter(out, snap=snap)
        for name in names:
            writer.add_interface(name, f"catchment {name}")
        print(f"capturing at {', '.join(names)}; Ctrl-C ends it", file=sys.stderr, flush=True)
        captured = _run(listeners, writer, wake, count, None if seconds is None else time.monotonic() + seconds)
        lost = sum(listener.dropped() for listener in listeners)
    print(f"{captured} frames" + (f", {lost} more were lost" if lost else "") + f" in {output}", file=sys.stderr)
    if str(output) != "-":
        print(shlex.join(["wireshark", "-X", f"lua_script:{DISSECTOR}", str(output)]), file=sys.stderr)


def _run(
    listeners: Sequence[Listener], writer: PcapngWriter, wake: int, count: int | None, deadline: float | None
) -> int:
    captured = 0
    while True:
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        ready = select.select([wake, *(listener.fileno() for listener in listeners)], [], [], left)[0]
        for listener in listeners:
            if listener.fileno() not in ready:
                continue
            for frame in listener.waiting():
                writer.add_frame(listener.tap.place, frame.time_ns, frame.data, frame.direction, frame.length)
                captured += 1
                if captured == count:
                    return captured
        if not ready or wake in ready or left == 0:
            return captured


def _taps(word: str, topology: Path | None, first: int) -> list[tuple[str, list[Tap]]]:
    """The places that a word means, each with its taps; they are numbered from `first`."""
    if word.startswith("iface="):
        name = word.removeprefix("iface=")
        if not name or not name.isprintable():
            raise CaptureError(f"{name!r} is no name of an interface; `ip link` lists them")
        return [(name, [Tap(name, None, first, INBOUND, OUTBOUND)])]
    place = find_place(topology)
    if place.network is None:
        raise CaptureError(
            f"network {place.topology.name} is not up on this machine; capture an interface with iface=NAME instead"
        )
    if word in place.topology.hosts:
        nics = [nic for nic in place.topology.host(word).nics if not nic.shm]
        if not nics:
            raise CaptureError(f"host {word} has no interface: {_IN_MEMORY}")
        rails = [place.topology.rail_of(nic.link.switch) for nic in nics]
        return [
            (word if len(nics) == 1 else f"{word} on {rail}",
             [Tap(interface_of(place, nic), _pid(place, word), first + at, INBOUND, OUTBOUND, True)])
            for at, (nic, rail) in enumerate(zip(nics, rails, strict=True))
        ]  # fmt: skip
    switch, colon, number = word.partition(":")
    if switch not in place.topology.switches:
        have = ", ".join([*place.topology.switches, *place.topology.hosts])
        raise CaptureError(f"no switch or host {switch!r} in network {place.topology.name}; there are: {have}")
    ports = place.topology.ports(switch)
    if colon and (not number.isdecimal() or int(number) not in ports):
        raise CaptureError(f"switch {switch} has no port {number!r}; there are: {', '.join(map(str, sorted(ports)))}")
    seen = [port for port, peer in sorted(ports.items()) if not (isinstance(peer, Host) and peer.shm)]
    wanted = [int(number)] if colon else seen
    if not set(wanted) & set(seen):
        raise CaptureError(f"{word} has no interface: {_IN_MEMORY}")
    links = [(f"{switch}:{port}", _link(place, switch, port)) for port in wanted]
    return [(name, switch_port_taps(*link, first + at)) for at, (name, link) in enumerate(links)]


def _link(place: Place, switch: str, port: int) -> tuple[str, tuple[str, int | None]]:
    from catchment.sim.lab.mininet.naming import interface_name  # noqa: PLC0415  only here is Mininet needed

    assert place.network is not None
    peer = place.topology.ports(switch)[port]
    own = interface_name(place.network.name, switch, port)
    if isinstance(peer, Host):
        return own, (interface_of(place, peer), _pid(place, peer.name))
    return own, (interface_name(place.network.name, peer.switch, peer.port), None)


def _pid(place: Place, host: str) -> int:
    assert place.network is not None
    try:
        return place.network.hosts[host]
    except KeyError:
        raise CaptureError(f"host {host} is not up in network {place.network.name}") from None


def _create(path: Path) -> BinaryIO:
    try:
        return path.open("wb")
    except OSError as error:
        raise CaptureError(f"cannot write {path}: {error.strerror}") from None
