"""`catchment traffic`: Scapy players of a job's members, and attackers, on the hosts of an emulated network."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

import typer

from catchment.checkout import ROOT
from catchment.cli.job import find_job
from catchment.cli.job_part import job_of_part
from catchment.cli.output import JsonOption, print_json, print_table
from catchment.cli.seconds import seconds_option
from catchment.cli.target import TopologyOption, complete_host, complete_job, find_place, interface_of
from catchment.controlplane.errors import ControlPlaneError
from catchment.ending_signals import ended_as_by_ctrl_c


class TrafficError(ControlPlaneError):
    """Traffic could not be played; says what to do."""


class Role(StrEnum):
    """What can be played."""

    WORKER = "worker"
    ROOT = "root"
    STRAGGLER = "straggler"
    ATTACKER = "attacker"


class StreamName(StrEnum):
    """The streams of a LuWu job."""

    GRADIENTS = "gradients"
    PARAMETERS = "parameters"


_LATE = "0.05..0.2"


def _attack_kind(kind: str) -> str:
    from catchment.sim.lab.traffic.attack_kind import AttackKind  # noqa: PLC0415  only this verb needs the lab

    if kind not in list(AttackKind):
        raise typer.BadParameter(f"{kind!r} is not one of: {', '.join(AttackKind)}")
    return kind


def traffic(
    role: Annotated[Role, typer.Argument(help="What to play.")],
    job: Annotated[str, typer.Argument(help="Name of the job.", autocompletion=complete_job)],
    *,
    host: Annotated[
        str,
        typer.Option(help="Host to play on: the member itself, or one to attack from.", autocompletion=complete_host),
    ],
    part: Annotated[
        str | None, typer.Option(help="Of a group of jobs: the label of one, as `job show` has it.")
    ] = None,
    rate: Annotated[float | None, typer.Option(help="Frames per second at most; else as fast as it goes.")] = None,
    loss: Annotated[float, typer.Option(help="Probability of not sending an own frame, and of not reading one.")] = 0.0,
    skew: Annotated[
        str | None,
        typer.Option(help=f"Seconds that each new vector comes late: S, or LOW..HIGH; a straggler: {_LATE}."),
    ] = None,
    seconds: Annotated[float | None, seconds_option(help="End after so long, done or not.")] = None,
    count: Annotated[int, typer.Option(help="Vectors (an attacker: frames).", min=1)] = 100,
    patience: Annotated[float, seconds_option(help="Seconds without anything new after which to give up.")] = 10.0,
    stream: Annotated[
        StreamName, typer.Option(help="Of a LuWu job: gradients to the root, or parameters to the workers.")
    ] = StreamName.GRADIENTS,
    kind: Annotated[
        str,
        typer.Option(
            help=(
                "What an attacker does: spoofed, generation, stolen, flood, arp, malformed, switch, local or keyless."
            ),
            callback=_attack_kind,
        ),
    ] = "spoofed",
    seed: Annotated[int | None, typer.Option(help="Of all that is random; drawn and printed if left out.")] = None,
    topology: TopologyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Play a member of a job with Scapy, or attack it: `traffic worker train --host w0 --loss 0.01`.

    Who gets sums or parameters checks every one: the workers of p4sgd and all-reduce jobs, the root of a LuWu job, and
    with `--stream parameters` its workers. An attacker tells which drop reason must have
    counted how many of its frames; of kind local it is another program on a member's host, of kind keyless root there
    without the key of a job with tags, else a host outside the job.
    """
    from catchment.sim.lab.mininet.naming import ENVIRONMENT_MARK  # noqa: PLC0415  only here is Mininet needed

    place = find_place(topology)
    if place.network is None:
        raise TrafficError(f"network {place.topology.name} is not up on this machine; start it with `catchment net up`")
    if host not in place.network.hosts:
        raise TrafficError(f"no host {host!r}; there are: {', '.join(place.network.hosts)}")
    described = job_of_part(find_job(place, job), part)
    description = _description(role, kind, job, host, described)
    nic = place.topology.plane(described["rail"]).host(host)
    seed = random.SystemRandom().randrange(1 << 32) if seed is None else seed
    if not as_json:
        typer.echo(f"seed {seed}")
    given = {
        "host": host, "ip": str(nic.ip.ip), "interface": interface_of(place, nic), "rate": rate,
        "loss": loss, "seconds": seconds, "count": count, "patience": patience, "kind": kind,
        "stream": stream, "seed": seed,
        "skew": skew or (_LATE if role is Role.STRAGGLER else None),
    }  # fmt: skip
    words = [word for name, value in given.items() if value is not None for word in (f"--{name}", str(value))]
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump(description, file)
        file.flush()
        command = ["mnexec", "-a", str(place.network.hosts[host]), sys.executable, "-m",
                   "catchment.sim.lab.traffic.play",
                   "worker" if role is Role.STRAGGLER else role, file.name, *words]  # fmt: skip
        with ended_as_by_ctrl_c():
            # In a group of its own, so that Ctrl-C on a terminal reaches it from us alone, and once.
            process = subprocess.Popen(
                command, stdout=subprocess.PIPE, text=True, cwd=ROOT, process_group=0,
                env={**os.environ, ENVIRONMENT_MARK: place.network.name},
            )  # fmt: skip
            output = _finish(process)
    try:
        outcome = json.loads(output.splitlines()[-1])
    except (IndexError, ValueError):
        raise TrafficError(f"the player on {host} ended with code {process.returncode} and said nothing") from None
    if as_json:
        print_json(outcome)
    else:
        _print_outcome(job, outcome)
    if outcome["error"] is not None:
        raise TrafficError(f"{role} on {host}: {outcome['error']}")


def _finish(process: subprocess.Popen[str]) -> str:
    """What the player prints; a signal that ends us ends it, and it then prints a summary."""
    while True:
        try:
            return process.communicate()[0]
        except KeyboardInterrupt:
            process.terminate()


def _description(role: Role, kind: str, job: str, host: str, described: Mapping[str, Any]) -> Mapping[str, Any]:
    """The description of the player in the job, or of the member that it attacks."""
    members: Mapping[str, Mapping[str, Any]] = described["members"]
    from catchment.sim.lab.traffic.attack_kind import AttackKind  # noqa: PLC0415  only this verb needs the lab

    if role is Role.ATTACKER and kind in (AttackKind.LOCAL, AttackKind.KEYLESS):
        if host not in members:
            raise TrafficError(
                f"host {host} is not in job {job}, and a {kind} attacker needs a member's: {', '.join(members)}"
            )
        return members[host]
    if role is Role.ATTACKER:
        if host in members:
            raise TrafficError(f"host {host} is in job {job}; attack from one that is not")
        return members[described["workers"][0]]
    if host not in members:
        raise TrafficError(f"host {host} is not in job {job}; in it are: {', '.join(members)}")
    if (members[host]["role"] == "root") != (role is Role.ROOT):
        raise TrafficError(f"host {host} has the role {members[host]['role']} in job {job}; it cannot play the {role}")
    return members[host]


def _print_outcome(job: str, outcome: Mapping[str, Any]) -> None:
    flat = {**outcome, **{f"frames {name}": number for name, number in outcome.get("frames", {}).items()}}
    rows = [(name.replace("_", " "), value) for name, value in flat.items() if name not in ("frames", "error")]
    print_table(f"traffic of job {job}", ("what", "value"), [row for row in rows if row[1] is not None])
