"""Why a job does not move: every sign that the switches give, in words, each with what to do about it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from catchment.controlplane.client import SwitchClient, SwitchError
from catchment.controlplane.diagnosis.stats import refused, switch_stats
from catchment.controlplane.diagnosis.waiting import (
    Missing,
    Sample,
    Waiting,
    newest_vectors,
    sample,
    silent_members,
    waiting_for,
)
from catchment.controlplane.jobs import JobPlan
from catchment.controlplane.jobs.entries import switch_configs
from catchment.controlplane.jobs.request import group_name
from catchment.controlplane.jobs.tree import Branch
from catchment.controlplane.state.desired import present
from catchment.controlplane.topology import AUTO_ADDRESS, Topology
from catchment.wire.generated.constants import Mode

_ADVICE = {
    "PARSE_ERROR": "frames are cut short on the way: compare the MTU of every interface with the topology's",
    "BAD_LANES": "an endpoint is made for another number of lanes: make it from `catchment job show`",
    "UNKNOWN_JOB": "somebody sends an old generation, or from a port that is not in the job: make every endpoint anew "
    "from `catchment job show`, or join through the controller",
    "WRONG_DIRECTION": "a member sends what only another role may: compare roles with `catchment job show`",
    "BAD_SLOT": "an entry points outside the program's slots: remove the job and create it again",
    "NO_RECEIVER": "the switch lacks a receiver's address: remove the job and create it again, or run a controller",
    "FAULT_INGRESS": "loss is injected on purpose: `catchment fault clear`",
    "FAULT_EGRESS": "loss is injected on purpose: `catchment fault clear`",
    "FORGED_ARP": "the host claims another's address: cut it off, or correct its addresses in the topology",
    "OTHER_SWITCH": "the host sends to another switch than its own: its endpoint needs the one in `catchment job show`",
    "FORGED_SOURCE": "the host sends in another's name: cut it off, or correct its addresses in the topology",
    "WRONG_UDP_PORT": "another program on that host sends in the job's name: find it with {ss}, or give the member's "
    "endpoint the port that `catchment job show` says",
    "BEYOND_WINDOW": "the member sends sequence numbers that nobody may be at yet: make its endpoint from "
    "`catchment job show`, or look who else runs on its host",
    "NOT_PACKED": "the member packs its lanes and the job does not: make its endpoint from `catchment job show`, or "
    "the job with --packed",
    "BAD_TAG": "frames in the member's name have no tag of the job's key: give its endpoint the stream with the key of "
    "this epoch, or look who else runs on its host or sits on its cable",
}
"""Drop reasons that explain a hang; others happen in a healthy job too."""
_STALE = "OLD_SEQ"
_GLANCES = 6
_OFTEN = 0.75
"""The share of all glances in which a slow member is waited for."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One sign of trouble in a network or job.

    Attributes:
        subject: a host or a switch.
        what: what is seen, with the counter or register that shows it.
        todo: what to do about it.
        certain: something is wrong; otherwise it may be so, or the job has nothing to do.
        silence: the subject sends nothing to this job; in another one of its group it may.
    """

    subject: str
    what: str
    todo: str
    certain: bool = True
    silence: bool = False

    def __str__(self) -> str:
        return f"{self.what}\n  -> {self.todo}"


@dataclass(frozen=True, slots=True)
class Examination:
    """What the switches say of one job.

    Attributes:
        findings: what holds whatever else goes on.
        standstill: what holds only where no job of the group moves: they share the switches' counters of drops.
        moves: a switch got a newer vector of the job while it was watched.
    """

    findings: list[Finding]
    standstill: list[Finding]
    moves: bool


def examine(
    job: JobPlan,
    topology: Topology,
    clients: Mapping[str, SwitchClient],
    *,
    interval: float = 1.0,
    absent: Mapping[str, str] | None = None,
) -> list[Finding]:
    """Look at the switches of a job by itself twice; arguments as `examine_one`."""
    seen = examine_one(job, topology, clients, interval=interval, absent=absent)
    return [*seen.findings, *([] if seen.moves else seen.standstill)]


def examine_one(
    job: JobPlan,
    topology: Topology,
    clients: Mapping[str, SwitchClient],
    *,
    interval: float = 1.0,
    absent: Mapping[str, str] | None = None,
    pause: Callable[[float], object] | None = None,
) -> Examination:
    """Look at the switches of a job, which may be one of a group, twice.

    Args:
        job: stored.
        topology: where.
        clients: switch name -> client; a switch of the job without one counts as dead.
        interval: seconds between the two looks.
        absent: host -> absent, left or lost, where a controller says so.
        pause: waits so many seconds; sleeps when left out.
    """
    absent = absent or {}
    before = {name: _look(client, job, topology, name) for name, client in clients.items()}
    up = {name: clients[name] for name, seen in before.items() if seen is not None}
    watched = _watch(up, job, interval, pause or time.sleep)
    after = {name: _look(clients[name], job, topology, name) if seen is not None else None
             for name, seen in before.items()}  # fmt: skip
    dead: list[Finding] = []
    pairs: list[tuple[Branch, _Look, _Look]] = []
    for branch in job.tree:
        earlier, later = before.get(branch.switch), after.get(branch.switch)
        if earlier is None or later is None:
            dead.append(_dead(branch.switch, clients, topology))
        else:
            pairs.append((branch, earlier, later))
    quiet = [m for branch, earlier, later in pairs for m in silent_members(job, branch, earlier.packets, later.packets)]
    hosts = [one for one in quiet if one.member in topology.hosts]
    # A switch that says nothing does so because of what is wrong below or above it, if anything is.
    others = [] if hosts or dead else [one for one in quiet if one.member not in topology.hosts]
    findings = [*dead, *(_gone(host, state) for host, state in absent.items() if host not in {m.member for m in hosts})]
    for branch, _, _ in pairs:
        findings += _missing_entries(job, topology, branch.switch, clients[branch.switch])
    findings += [_silent(one, topology, interval, absent.get(one.member)) for one in (*hosts, *others)]
    for branch, earlier, later in pairs:
        findings += _dropped(branch.switch, earlier, later, topology, interval)
    silent = {one.member for one in quiet}
    moves = any(earlier.newest != later.newest for _, earlier, later in pairs)
    standstill: list[Finding] = []
    for branch, earlier, later in pairs:
        findings += _waiting([earlier.waiting, *watched[branch.switch], later.waiting], topology, silent, interval)
        findings += _not_taken(job, branch, earlier, later, silent)
        if not moves:
            findings += _behind(earlier, later, topology, silent)
        standstill += _stale(job, branch, earlier, later, interval)
    return Examination(findings, standstill, moves)


_Waits = dict[tuple[str, str], Waiting]
"""Stream and step -> what waits."""


@dataclass(frozen=True, slots=True)
class _Look:
    packets: Sample
    drops: dict[str, int]
    refused: dict[tuple[int, str], int]  # by port and reason
    plugged: dict[int, str]  # port -> the host or switch that is plugged in there
    waiting: _Waits
    newest: dict[str, int]  # by stream
    lags: dict[tuple[str, str], int]  # by stream and member: frames of credit behind the others


def _look(client: SwitchClient, job: JobPlan, topology: Topology, switch: str) -> _Look | None:
    try:
        stats = switch_stats(topology, switch, client, [job])
        return _Look(
            sample(client),
            stats.drops,
            refused(client, stats.ports, stats.drops),
            stats.ports,
            _waits(client, job, switch),
            newest_vectors(job, switch, client),
            {(lag.stream, lag.member): lag.credit for lag in stats.lags if lag.job == job.name},
        )
    except SwitchError:
        return None


def _waits(client: SwitchClient, job: JobPlan, switch: str) -> _Waits:
    return {(one.stream, one.step): one for one in waiting_for(job, {switch: client})}


def _watch(
    clients: Mapping[str, SwitchClient], job: JobPlan, interval: float, pause: Callable[[float], object]
) -> dict[str, list[_Waits]]:
    """What waits on each switch, a few times in `interval` seconds."""
    found: dict[str, list[_Waits]] = {name: [] for name in clients}
    for _ in range(_GLANCES):
        pause(interval / (_GLANCES + 1))
        for name, client in clients.items():
            with contextlib.suppress(SwitchError):  # the second look says so
                found[name].append(_waits(client, job, name))
    pause(interval / (_GLANCES + 1))
    return found


def _dead(switch: str, clients: Mapping[str, SwitchClient], topology: Topology) -> Finding:
    named = clients[switch].where if switch in clients else f"switch {switch}"
    address = topology.switch(switch).grpc
    at = f" ({address})" if switch not in clients and address != AUTO_ADDRESS else ""
    return Finding(
        switch,
        f"{named} does not answer on P4Runtime{at}",
        "is its process running, or stopped? Start it again; a controller (`catchment controller run`) then restores "
        "its program and jobs by itself",
    )


_STATES = {
    "absent": ("has not joined", "start its program"),
    "lost": ("is lost", "start its program again: it gets new generations"),
    "left": ("has left", "it has finished; if it should not have, start its program again"),
}


def _gone(host: str, state: str) -> Finding:
    said, todo = _STATES[state]
    return Finding(host, f"{host} {said}, says the controller", todo)


def _silent(one: Missing, topology: Topology, interval: float, state: str | None) -> Finding:
    seen = "it has never sent anything" if not one.packets else f"it stands at {one.packets}"
    where = f"{one.member}, on port {one.port} of {one.switch}"
    what = f"sends nothing: counter job_packets stood still for {interval:g} s ({seen})"
    if state is not None:
        said, todo = _STATES[state]
        return Finding(one.member, f"{where}, {said}, says the controller, and {what}", todo, silence=True)
    if one.member in topology.hosts:
        todo = (
            "look whether its program runs (and is not stopped), has its endpoint open with the generations of "
            f"`catchment job show`, and whether its link is up ({_command_on(one.member, 'ip link', topology)})"
        )
        return Finding(one.member, f"{where}, {what}", todo, silence=True)
    return Finding(
        one.member,
        f"switch {where}, {what}, though every host sends",
        f"the link between {one.switch} and {one.member} carries nothing: look at both ends (`catchment stats`, "
        "`catchment fault list`)",
        silence=True,
    )


def _command_on(host: str, command: str, topology: Topology) -> str:
    """How to run a command on a host; `net exec` knows those of an emulated network, whose switches are `auto`."""
    emulated = host in topology.hosts and all(one.grpc == AUTO_ADDRESS for one in topology.switches.values())
    return f"`catchment net exec {host} {command}`" if emulated else f"`{command}` on {host}"


def _dropped(switch: str, earlier: _Look, later: _Look, topology: Topology, interval: float) -> list[Finding]:
    found = []
    for reason, count in later.drops.items():
        grown = count - earlier.drops.get(reason, 0)
        if not grown or reason not in _ADVICE:
            continue
        text = f"{switch} drops frames: counter drops[{reason}] rose by {grown} in {interval:g} s"
        senders = {port: after - earlier.refused.get((port, why), 0)
                   for (port, why), after in later.refused.items() if why == reason}  # fmt: skip
        blamed = {port: frames for port, frames in senders.items() if frames}
        for port, frames in blamed.items():
            peer = later.plugged[port]
            said = f"{text}; {frames} came from {peer} on port {port} (counter refused)"
            todo = _ADVICE[reason].format(ss=_command_on(peer, "ss -ulpn", topology))
            found.append(Finding(peer, said, todo))
        if not blamed:
            found.append(Finding(switch, text, _ADVICE[reason].format(ss="`ss -ulpn`")))
    return found


def _stale(job: JobPlan, branch: Branch, earlier: _Look, later: _Look, interval: float) -> Iterator[Finding]:
    """Frames that are old, while nothing new comes: those of a run that begins where an earlier one has been.

    The counter is of all jobs on the switch: it says nothing of one that has no vectors there, or whose members sent
    nothing meanwhile, and of one beside which others sent it is said that the frames may be theirs.
    """
    grown = later.drops.get(_STALE, 0) - earlier.drops.get(_STALE, 0)
    cells = [(stream.gen, port) for stream in job.streams if stream.mode is not Mode.BCAST
             for port, _ in branch.members]  # fmt: skip
    sent = sum(later.packets.get(cell, 0) - earlier.packets.get(cell, 0) for cell in cells)
    own = {stream.gen for stream in job.streams}
    others = any(count > earlier.packets.get(cell, 0) for cell, count in later.packets.items() if cell[0] not in own)
    if grown and sent and later.newest:
        yield Finding(
            branch.switch,
            f"{branch.switch} has later vectors than it is sent: counter drops[{_STALE}] rose by {grown} in "
            f"{interval:g} s{', of this job or of others that send there, too' if others else ''}",
            f"if an earlier run has used this job: `catchment job renew {group_name(job.name)}`, and make its "
            "endpoints anew from `catchment job show`; a controller does both by itself",
            certain=False,
        )


def _missing_entries(job: JobPlan, topology: Topology, switch: str, client: SwitchClient) -> list[Finding]:
    config = next(config for config in switch_configs(job, topology) if config.switch == switch)
    there = len(present(config, client))
    lacking = sum(not entry.is_default for entry in config.entries) - there
    groups = sorted(set(config.groups) - set(client.groups()))
    if not lacking and not groups:
        return []
    what = f"{lacking} of {len(config.entries)} table entries" + (f" and group {groups[0]}" if groups else "")
    return [
        Finding(
            switch,
            f"switch {switch} lacks {what} of job {job.name}: it was restarted, or somebody deleted them",
            f"run a controller, which puts them back, or `catchment job renew {group_name(job.name)}`, which writes "
            "the job with new generations",
        )
    ]


def _waiting(watched: Sequence[_Waits], topology: Topology, silent: set[str], interval: float) -> Iterator[Finding]:
    """Vectors that some have sent and others have not: stuck where it is the same all the time, slow where it moves.

    A running job waits for somebody at nearly every moment; who is slow is waited for at nearly all of them.
    """
    for key, last in watched[-1].items():
        waits = [one[key] for one in watched if key in one]
        moved = (last.seq - waits[0].seq) & 0xFFFF_FFFF
        for member in last.members:
            what = f"{last.stream}: {last.step} {last.seq} waits at {last.switch} for {member}"
            where = f"(registers {' and '.join(last.registers)}, slot {last.slot})"
            if sum(member in one.members for one in waits) < _OFTEN * len(watched):
                continue
            if moved:
                if member in topology.hosts:
                    yield Finding(
                        member,
                        f"{what} {where}, and nearly always for {member}; {moved} went by in {interval:g} s",
                        f"{member} is slow, not stuck, and the others wait for it: look at its load and its link",
                    )
                continue
            todo = f"{member} sends, but not this {last.step}: its program does not push, or a receiver does not pull"
            if member in topology.switches:
                todo = f"what {member} waits for is listed for it"
            elif member in silent:
                todo = "see above"
            yield Finding(member, f"{what} {where}", todo)


def _not_taken(job: JobPlan, branch: Branch, earlier: _Look, later: _Look, silent: set[str]) -> Iterator[Finding]:
    """Sums that are complete at the top and not taken: sent again and again, or no more are sent for want of credit."""
    if branch.parent is not None or job.root is None or job.root in silent:
        return
    for stream in job.streams:
        seq = later.newest.get(stream.name)
        if stream.mode is not Mode.REDUCE or seq is None or earlier.newest.get(stream.name) != seq:
            continue
        if any(name == stream.name for name, _ in later.waiting):
            continue
        ports = [port for port, _ in branch.members]
        again = sum(later.packets.get((stream.gen, p), 0) - earlier.packets.get((stream.gen, p), 0) for p in ports)
        if again:
            yield Finding(
                job.root,
                f"{stream.name}: every vector up to {seq} is complete at {branch.switch} (register slot_tag), workers "
                f"send them again (counter job_packets rose by {again}), and {job.root} does not acknowledge them",
                f"the program on {job.root} does not pull, or its frames are lost on port {branch.up_port} of "
                f"{branch.switch} (`catchment fault list`, `catchment stats {branch.switch}`)",
            )
            continue
        up = (stream.gen, branch.up_port or 0)
        if later.packets.get(up, 0) > earlier.packets.get(up, 0):
            yield Finding(
                job.root,
                f"{stream.name}: nothing comes after vector {seq}, which is complete at {branch.switch} (register "
                f"slot_tag); {job.root} sends heartbeats (counter job_packets), the workers no vectors",
                f"if they have more to push, {job.root} gives them no credit: its program does not pull",
                certain=False,
            )


def _behind(earlier: _Look, later: _Look, topology: Topology, silent: set[str]) -> Iterator[Finding]:
    """Hosts whose heartbeats say that they take less than the others, and no more than before, in a job that hangs."""
    for (stream, member), lag in later.lags.items():
        if lag and lag >= earlier.lags.get((stream, member), 0) > 0 and member in topology.hosts.keys() - silent:
            yield Finding(
                member,
                f"{stream}: {member} takes {lag} frames less than the others (heartbeat registers), and no more than "
                "before",
                f"the program on {member} does not pull what comes down: look where it stands",
            )
