"""A job as a value: its members, and what it holds on every switch."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self

from catchment.controlplane.jobs.allocation import Allocator, Share
from catchment.controlplane.jobs.errors import JobError
from catchment.controlplane.jobs.kind import kind_of
from catchment.controlplane.jobs.tree import Branch
from catchment.controlplane.topology import PortRef
from catchment.wire.generated.constants import UDP_PORT, Mode


def new_key() -> str:
    """A key that nobody can guess: 128 bits as hexadecimal digits."""
    return secrets.token_hex(16)


@dataclass(frozen=True, slots=True)
class StreamPlan:
    """One stream of a job.

    Attributes:
        name: gradients, parameters or sums.
        gen: its generation.
        mode: of the top switch; switches below it are leaves.
        slots: T, vectors in flight.
        shares: what it holds on each switch of the tree.
        packed: its vectors may have packed lanes: two 16-bit integers each.
        key: under which its frames carry tags, 32 hexadecimal digits: a secret; empty without tags. Where keys follow
            one another, that of even terms.
        term_bits: keys follow one another: each serves for a term of 2^term_bits numbers; 0: one serves for all.
        term: the older of the two terms whose keys are in use.
        odd_key: that of odd terms; empty while `key` is.
    """

    name: str
    gen: int
    mode: Mode
    slots: int
    shares: tuple[Share, ...]
    packed: bool = False
    key: str = field(default="", repr=False)
    term_bits: int = 0
    term: int = 0
    odd_key: str = field(default="", repr=False)

    def renewed(self, generation: int) -> Self:
        """The same stream with another generation, and another key if it has one."""
        return replace(self, gen=generation, key=new_key() if self.key else "", term=0, odd_key="")

    def come_to(self, term: int) -> Self:
        """The same stream once all ranks have come to `term`: the next term's key takes the oldest one's place."""
        if term % 2:
            return replace(self, term=term, key=new_key(), odd_key=self.odd_key or self.key)
        return replace(self, term=term, odd_key=new_key())

    @property
    def latest(self) -> tuple[int, str]:
        """The newest term that there is a key for, and that key."""
        term = self.term + 1
        return term, (self.odd_key or self.key) if term % 2 else self.key

    def share(self, switch: str) -> Share:
        """What it holds on a switch of its tree."""
        return next(share for share in self.shares if share.switch == switch)


@dataclass(frozen=True, slots=True)
class RingPlan:
    """What a part of a job has in place of a tree, where its members add up among themselves.

    Attributes:
        transport: ``tcp`` or ``mptcp``.
        switches: those that its members' NICs are on, which forward what goes round.
    """

    transport: str
    switches: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class JobPlan:
    """A job; `plan_job` makes one.

    Attributes:
        name: for people and the state file.
        kind: what it does (controlplane/jobs/kinds).
        topology: name of the topology that it was planned on.
        workers: host names, in the order of the worker indices.
        root: the optimizer node's host name; None for all-reduces.
        lanes: 32-bit lanes per frame.
        slots: T of every adding stream whose kind does not fix it.
        param_bytes: largest payload of a PARAM frame.
        ports: UDP port of each host for this job; in a ring the TCP port at which it listens.
        addresses: IPv4 address of each host and of its switch; in a ring of the next member.
        tree: the switches, top first; none of a ring.
        streams: at least one.
        rail: the rail it runs on; None where the topology has none.
        memory: the path of a host's shared-memory port, for those that have one.
        owner: the words that its entries are marked with, so that control planes know their own; may be empty.
        rates: bits per second of a host's NIC, for those with a limit.
        ring: where its members add up among themselves; None where switches do.
    """

    name: str
    kind: str
    topology: str
    workers: tuple[str, ...]
    root: str | None
    lanes: int
    slots: int
    param_bytes: int
    ports: Mapping[str, int]
    addresses: Mapping[str, tuple[str, str]]
    tree: tuple[Branch, ...]
    streams: tuple[StreamPlan, ...]
    rail: str | None = None
    memory: Mapping[str, str] = field(default_factory=dict)
    owner: str = ""
    rates: Mapping[str, int] = field(default_factory=dict)
    ring: RingPlan | None = None

    @property
    def carriers(self) -> tuple[str, ...]:
        """The switches that its frames pass: those of its tree, of a ring those that its members are on."""
        return tuple(branch.switch for branch in self.tree) if self.ring is None else self.ring.switches

    @property
    def packed(self) -> bool:
        """Whether it has a stream whose vectors may have packed lanes."""
        return any(stream.packed for stream in self.streams)

    @property
    def tags(self) -> bool:
        """Whether its frames carry tags."""
        return any(stream.key for stream in self.streams)

    def renewed(self, allocator: Allocator) -> Self:
        """The same job with new generations and keys: for members that lost their state. Slots, rows and groups stay.

        Raises:
            JobError: no generation is left.
        """
        return replace(self, streams=tuple(s.renewed(allocator.generation()) for s in self.streams))

    def come_to(self, terms: Mapping[int, int]) -> Self:
        """The same job with another key for each stream whose generation is in `terms` (`StreamPlan.come_to`)."""
        return replace(self, streams=tuple(s.come_to(terms[s.gen]) if s.gen in terms else s for s in self.streams))

    def release(self, allocator: Allocator) -> None:
        """Give back what the job holds: it is on no switch any more."""
        for stream in self.streams:
            allocator.release_generation(stream.gen)
            for share in stream.shares:
                allocator.release(share)
        for host, port in self.ports.items():
            allocator.release_port(host, port)

    def stream(self, name: str) -> StreamPlan:
        """A stream by name."""
        return next(stream for stream in self.streams if stream.name == name)

    def describe(self, host: str, *, to_member: bool = False) -> dict[str, Any]:
        """What a host's endpoint needs, as plain JSON values; `to_member`: with `term_bits`, since it can ask for keys.

        Keys: job, kind, host, role (worker, root, peer, slots), wid, local and switch ([ip, port]), switch_name, rail
        (where the topology has some), rate (of its NIC, in bits per second, where the topology limits it), one
        key per stream (gradients and parameters, or sums) with the arguments of `host.Stream`, and port ("shm:PATH")
        where the topology says that the switch shares memory with this host. In a ring in place of the switch: ring
        (tcp or mptcp) and next, where the next member listens.

        Raises:
            JobError: the host is not in the job.
        """
        if host not in self.ports:
            raise JobError(f"host {host} is not in job {self.name}; in it are: {', '.join(self.ports)}")
        ip, peer_ip = self.addresses[host]
        streams = {
            stream.name: {
                "gen": stream.gen,
                "workers": len(self.workers),
                "slots": stream.slots,
                "base_seq": 0,
                "lanes": self.lanes,
                "param_bytes": self.param_bytes,
                **({"packed": True} if stream.packed else {}),
                **({"key": stream.key} if stream.key else {}),
                **({"term_bits": stream.term_bits} if stream.term_bits and to_member else {}),
            }
            for stream in self.streams
        }
        role = "root" if host == self.root else kind_of(self.kind).role
        return {
            "job": self.name,
            "kind": self.kind,
            "host": host,
            "role": role,
            "wid": self.workers.index(host) if host in self.workers else 0,
            "local": [ip, self.ports[host]],
            **self._peer(host, peer_ip),
            **({"rail": self.rail} if self.rail is not None else {}),
            **({"rate": self.rates[host]} if host in self.rates else {}),
            **({"port": f"shm:{self.memory[host]}"} if host in self.memory else {}),
            **streams,
        }

    def _peer(self, host: str, ip: str) -> dict[str, Any]:
        if self.ring is not None:
            following = self.workers[(self.workers.index(host) + 1) % len(self.workers)]
            return {"ring": self.ring.transport, "next": [ip, self.ports[following]]}
        name = next(branch.switch for branch in self.tree if self._is_at(host, branch))
        return {"switch": [ip, UDP_PORT], "switch_name": name}

    def _is_at(self, host: str, branch: Branch) -> bool:
        """Whether a member's link leads to this switch of the tree; the root's to the top."""
        return branch.parent is None if host == self.root else any(name == host for _, name in branch.members)

    def describe_all(self) -> dict[str, Any]:
        """The job and what each member needs, as plain JSON values: what a job file (CATCHMENT_JOB) holds.

        Keys: name, kind, workers, root, lanes, slots, rail, tree (its switches, top first), and members, host by host.
        """
        return {
            "name": self.name,
            "kind": self.kind,
            "workers": list(self.workers),
            "root": self.root,
            "lanes": self.lanes,
            "slots": self.slots,
            "rail": self.rail,
            "tree": [branch.switch for branch in self.tree],
            "members": {host: self.describe(host) for host in self.ports},
        }

    def to_json(self) -> dict[str, Any]:
        """Everything, as plain JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The opposite of `to_json`.

        Raises:
            JobError: not such a job.
        """
        try:
            values = dict(data)
            kind_of(values["kind"])
            values["workers"] = tuple(values["workers"])
            values["addresses"] = {h: (a, s) for h, (a, s) in values["addresses"].items()}
            values["tree"] = tuple(_branch(b) for b in values["tree"])
            values["streams"] = tuple(
                StreamPlan(
                    s["name"],
                    s["gen"],
                    Mode(s["mode"]),
                    s["slots"],
                    tuple(Share(**x) for x in s["shares"]),
                    bool(s.get("packed", False)),
                    str(s.get("key", "")),
                    int(s.get("term_bits", 0)),
                    int(s.get("term", 0)),
                    str(s.get("odd_key", "")),
                )
                for s in values["streams"]
            )
            if (ring := values.get("ring")) is not None:
                values["ring"] = RingPlan(ring["transport"], tuple(ring["switches"]))
            return cls(**values)
        except (KeyError, TypeError, ValueError) as error:
            raise JobError(f"not a stored job: {error!r}") from None


def _branch(data: Mapping[str, Any]) -> Branch:
    parent = PortRef(**data["parent"]) if data["parent"] else None
    members = tuple((port, name) for port, name in data["members"])
    return Branch(data["switch"], members, data["up_port"], parent, data["up_wid"])
