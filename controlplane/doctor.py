"""Why a job does not move: every sign that the switches give, in words, each with what to do about it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from controlplane.client import SwitchClient, SwitchError
from controlplane.desired import present
from controlplane.diagnosis import Sample, sample, silent_members, waiting_for
from controlplane.jobs import JobPlan
from controlplane.jobs.entries import switch_configs
from controlplane.stats import drops
from controlplane.topology import Topology

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
    "FORGED_ARP": "a host claims a switch's address: find it with `catchment stats` and cut it off",
    "OTHER_SWITCH": "a host sends to another switch than its own: its endpoint needs the one in `catchment job show`",
}
"""Drop reasons that explain a hang; others happen in a healthy job too."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One sign.

    Attributes:
        subject: a host or a switch.
        what: what is seen, with the counter or register that shows it.
        todo: what to do about it.
    """

    subject: str
    what: str
    todo: str

    def __str__(self) -> str:
        return f"{self.what}\n  -> {self.todo}"


def examine(
    job: JobPlan, topology: Topology, clients: Mapping[str, SwitchClient], *, interval: float = 1.0
) -> list[Finding]:
    """Look at a job's switches twice.

    Args:
        job: stored.
        topology: where.
        clients: switch name -> client; a switch of the job without one counts as dead.
        interval: seconds between the two looks.
    """
    before = {name: _look(client) for name, client in clients.items()}
    time.sleep(interval)
    findings: list[Finding] = []
    alive: dict[str, SwitchClient] = {}
    silent: set[str] = set()
    for branch in job.tree:
        earlier = before.get(branch.switch)
        later = _look(clients[branch.switch]) if earlier is not None else None
        if earlier is None or later is None:
            findings.append(_dead(branch.switch, topology))
            continue
        alive[branch.switch] = clients[branch.switch]
        findings += _missing_entries(job, topology, branch.switch, clients[branch.switch])
        for one in silent_members(job, branch, earlier.packets, later.packets):
            silent.add(one.member)
            where = f"{one.member}, on port {one.port} of {one.switch}"
            seen = "it has never sent anything" if not one.packets else f"it stands at {one.packets}"
            findings.append(
                Finding(
                    one.member,
                    f"{where}, sends nothing: counter job_packets stood still for {interval:g} s ({seen})",
                    _what_of(one.member, topology),
                )
            )
        for reason, count in later.drops.items():
            grown = count - earlier.drops.get(reason, 0)
            if grown and reason in _ADVICE:
                text = f"{branch.switch} drops frames: counter drops[{reason}] rose by {grown} in {interval:g} s"
                findings.append(Finding(branch.switch, text, _ADVICE[reason]))
    return findings + _waiting(job, topology, alive, silent)


@dataclass(frozen=True, slots=True)
class _Look:
    packets: Sample
    drops: dict[str, int]


def _look(client: SwitchClient) -> _Look | None:
    try:
        return _Look(sample(client), drops(client))
    except SwitchError:
        return None


def _dead(switch: str, topology: Topology) -> Finding:
    return Finding(
        switch,
        f"switch {switch} does not answer on P4Runtime ({topology.switch(switch).grpc})",
        "start it again; a controller (`catchment controller run`) then restores its program and jobs by itself",
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
            "run a controller, which puts them back, or remove the job and create it again",
        )
    ]


def _what_of(member: str, topology: Topology) -> str:
    if member in topology.hosts:
        return (
            "look whether its program runs and has its endpoint open, and whether its link is up "
            f"(`catchment net exec {member} ip link`)"
        )
    return f"look at switch {member}: what it waits for is listed for it, or it forwards nothing upwards"


def _waiting(job: JobPlan, topology: Topology, clients: Mapping[str, SwitchClient], silent: set[str]) -> list[Finding]:
    findings = []
    for wait in waiting_for(job, clients):
        for member in wait.members:
            todo = f"{member} sends, but not this {wait.step}: its program does not push, or a receiver does not pull"
            if member in silent or member not in topology.hosts:
                todo = "see above"
            what = f"{wait.stream}: {wait.step} {wait.seq} waits at {wait.switch} for {member}"
            findings.append(
                Finding(member, f"{what} (registers {' and '.join(wait.registers)}, slot {wait.slot})", todo)
            )
    return findings
