"""Hosts, switches and cables of a topology, on one clock of 250 MHz.

    with Machine(star(["w0", "w1", "opt"], program=LUWU), {"w0": WORKER, "w1": WORKER, "opt": ROOT}) as machine:
        job = machine.luwu(["w0", "w1"], root="opt")
        pull = machine["opt"].pull(4096, DataType.FP32)
        pushes = [machine[w].push(gradient, DataType.FP32, exponent=3) for w in job.workers]
        machine.finish([pull, *pushes])
        np.frombuffer(pull.check(), np.float32)

NICs are Verilated RTL, switches run the P4 program that the embedded target compiles, and the control plane's own plan
fills their tables. Equal seeds give equal runs, to the picosecond.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from catchment.checkout import ROOT
from catchment.controlplane.deployment.fabric import forwarding_config
from catchment.controlplane.jobs import Allocator, JobPlan, plan_job
from catchment.controlplane.jobs.entries import switch_configs
from catchment.controlplane.jobs.generations import GenerationOrder
from catchment.controlplane.topology import PortRef, Topology, star
from catchment.controlplane.topology import Switch as PlannedSwitch
from catchment.rtl.generated.nic_regs import Role
from catchment.sim.cosim.cable import Cable, Sighting, in_order, write_capture
from catchment.sim.cosim.errors import CosimError
from catchment.sim.cosim.member_host import MemberHost, MemberTransfer
from catchment.sim.cosim.memory_device import MemoryDevice, RingSum
from catchment.sim.cosim.models import (
    CLOCK_NS,
    PICOS_PER_NANO,
    HostModel,
    LinkModel,
    RingModel,
    StackModel,
    SwitchModel,
)
from catchment.sim.cosim.native import native
from catchment.sim.cosim.nic_host import NicHost, NicTransfer
from catchment.sim.cosim.switch import build_switch, take_off, write_config
from catchment.sim.cosim.timing import Timing
from catchment.wire.generated.constants import LANE_BYTES

LUWU = ROOT / "p4src" / "luwu.p4"
_BATCH = 256
_SEED_MASK = (1 << 64) - 1

Transfer = NicTransfer | MemberTransfer
UnderWay = Transfer | RingSum


class Kind(StrEnum):
    """What a host has: a WorkerNIC, an AggNIC, the endpoint of host/ for either role; or it is a device of a ring."""

    WORKER = "WorkerNIC"
    ROOT = "AggNIC"
    SOFTWARE = "software"
    MEMORY_DEVICE = "memory device"


class Machine:
    """A topology in simulation; a context manager.

    Args:
        topology: hosts, switches, cables.
        hosts: what each host is; hosts that are not named stay unplugged. Memory devices, which the topology does not
            have, are a ring in this order.
        seed: of everything random.
        parameters: of the NICs' RTL, as WINDOW.
        batch: clocks that a NIC may run ahead of the others at most; changes nothing but speed.
        waves: a folder for a waveform of each NIC, NAME.fst; all simulation is then much slower.

    Attributes:
        cables: by the name of the host, or of the lower switch, at one end.
        memories: the devices of the ring, in its order.
        links: by memory device: what leaves it to the next one, and to the one before.
    """

    def __init__(
        self, topology: Topology, hosts: Mapping[str, Kind], *, seed: int = 1, link: LinkModel | None = None,
        switch: SwitchModel | None = None, host: HostModel | None = None, stack: StackModel | None = None,
        ring: RingModel | None = None, parameters: Mapping[str, int] | None = None, batch: int = _BATCH,
        waves: Path | None = None,
    ) -> None:  # fmt: skip
        self.topology = topology
        self.link, self.switch_model = link or LinkModel(), switch or SwitchModel()
        self._host_model, self._stack_model, self._parameters = host or HostModel(), stack or StackModel(), parameters
        self._waves = waves
        if waves is not None:
            waves.mkdir(parents=True, exist_ok=True)
        self._random = random.Random(seed)
        self._allocator = Allocator(topology, order=GenerationOrder(self._bits(64)))
        self._native = native()
        self._machine = self._native.Machine(seed & _SEED_MASK, batch)
        self._exits = ExitStack()
        self.programs = {name: build_switch(each, self._bits(32)) for name, each in topology.switches.items()}
        self.switches = {
            name: self._machine.add_switch(
                program.dataplane, int(self.switch_model.pipeline_ns * PICOS_PER_NANO), self.switch_model.queue_bytes
            )
            for name, program in self.programs.items()
        }
        for name, program in self.programs.items():
            write_config(forwarding_config(topology, name), program)
        self.hosts: dict[str, NicHost | MemberHost] = {}
        self.memories: dict[str, MemoryDevice] = {}
        self.links: dict[str, tuple[Any, Any]] = {}
        self.cables: dict[str, Cable] = {}
        with self._exits as exits:  # of the NICs that are there when a later one cannot be built
            for number, (name, kind) in enumerate(hosts.items()):
                if kind is Kind.MEMORY_DEVICE:
                    self._add_memory(name, ring or RingModel())
                else:
                    self._add_host(name, kind, number)
            for cable in topology.links:
                self.cables[cable.a.switch] = self._connect(self._port(cable.a), self._port(cable.b))
            self._close_ring(ring or RingModel())
            self._exits = exits.pop_all()

    @classmethod
    def star(
        cls, workers: int, *, software: Collection[str] = (), lanes: int = 64, slots: int = 1024, tags: bool = False,
        **options: Any,
    ) -> Self:  # fmt: skip
        """Workers w0, w1, ... and the root opt on one switch, some in `software`; `options` as for `Machine`.

        With `tags` the switch is built for jobs that have them.
        """
        names = [f"w{i}" for i in range(workers)]
        topology = star([*names, "opt"], program=LUWU, lanes=lanes, slots=slots, tags=tags)
        kinds = {**dict.fromkeys(names, Kind.WORKER), "opt": Kind.ROOT, **dict.fromkeys(software, Kind.SOFTWARE)}
        return cls(topology, kinds, **options)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._machine.close()
        self._exits.close()

    def __getitem__(self, host: str) -> NicHost | MemberHost:
        return self.hosts[host]

    def nic(self, host: str) -> NicHost:
        """A host whose NIC is RTL.

        Raises:
            CosimError: it is none.
        """
        found = self.hosts[host]
        if not isinstance(found, NicHost):
            raise CosimError(f"{host} has no NIC in RTL: its endpoint is software")
        return found

    def memory(self, host: str) -> MemoryDevice:
        """A device of the ring.

        Raises:
            CosimError: it is none.
        """
        if host not in self.memories:
            raise CosimError(f"{host} is no memory device: {', '.join(self.memories) or 'there is none'}")
        return self.memories[host]

    # ---- time ------------------------------------------------------------------------------------------------

    @property
    def clocks(self) -> int:
        """Clocks since the machine was built."""
        return int(self._machine.clocks)

    @property
    def now_ns(self) -> int:
        """The machine's time."""
        return self.clocks * CLOCK_NS

    def run(self, clocks: int) -> None:
        """Let clocks pass.

        Raises:
            RtlFailedError: an assertion of a NIC failed.
        """
        self._machine.run(clocks)
        self._check_hardware()

    def _check_hardware(self) -> None:
        for host in self.hosts.values():
            if isinstance(host, NicHost):
                host.nic.check()
        for memory in self.memories.values():
            memory.check()

    def finish(self, transfers: Iterable[UnderWay], limit: int = 10_000_000) -> None:
        """Run until all of them are done.

        Raises:
            CosimError: they are not after `limit` clocks.
            RtlFailedError: an assertion of a NIC failed.
        """
        left = [transfer for transfer in transfers if not transfer.done]
        end = self.clocks + limit
        while left:
            if self.clocks >= end:
                stuck = ", ".join(f"{t.host.name}: {t.kind}" for t in left)
                raise CosimError(f"not done after {limit} clocks: {stuck}; look at the NICs' statistics")
            self._machine.run_watched(end - self.clocks)
            self._check_hardware()
            left = [transfer for transfer in left if not transfer.done]

    @contextmanager
    def together(self) -> Iterator[None]:
        """Doorbells of all hosts within ring at one time, when it ends: one push and one pull of each."""
        buses = [host.bus for host in self.hosts.values() if isinstance(host, NicHost)]
        for bus in buses:
            bus.hold()
        try:
            yield
        finally:
            for bus in buses:
                bus.ring()

    @contextmanager
    def capture(self, path: Path) -> Iterator[None]:
        """Write what cables carry within to a pcapng file at the end; lost frames are on interfaces of their own.

        Raises:
            OSError: the file cannot be written; before anything runs, if it cannot be made.
        """
        with path.open("wb") as out, self.sighted() as seen:
            try:
                yield
            finally:
                write_capture(out, self.cables, seen())

    @contextmanager
    def sighted(self) -> Iterator[Callable[[], list[Sighting]]]:
        """Watch the cables within: each call of what is given takes what they carried since the last, in order."""
        self._machine.capture(True)
        try:
            yield lambda: in_order(self.cables, self._machine.sightings())
        finally:
            self._machine.capture(False)

    # ---- jobs ------------------------------------------------------------------------------------------------

    def luwu(self, workers: Sequence[str], root: str, **plan: Any) -> JobPlan:
        """Plan a job, fill the switches' tables and start its members; `plan` as for `plan_job`."""
        plan = {"name": f"job{root}", "param_bytes": self._vector_bytes(root), **plan}
        return self.begin(
            plan_job("luwu", self.topology, workers=workers, root=root, allocator=self._allocator, **plan)
        )

    def allreduce(self, workers: Sequence[str], **plan: Any) -> JobPlan:
        """Make a machine as `luwu` does, for an all-reduce; `plan` as for `plan_job`."""
        plan = {"name": "sums", **plan}
        return self.begin(plan_job("allreduce", self.topology, workers=workers, allocator=self._allocator, **plan))

    def begin(self, job: JobPlan) -> JobPlan:
        """Fill the switches' tables and start a job's members.

        Raises:
            CosimError: the job has tags, and a member's NIC has none.
        """
        members = [self.hosts[name] for name in (*job.workers, *([job.root] if job.root else []))]
        if job.tags:
            for member in members:
                if isinstance(member, NicHost) and not member.driver.tag_units:
                    raise CosimError(
                        f"job {job.name} has tags, and the NIC of {member.name} is built without: give the machine "
                        'parameters={"TAG_UNITS": 4}, or plan the job without tags'
                    )
        for config in switch_configs(job, self.topology):
            write_config(config, self.programs[config.switch])
        for member in members:
            self.join(job, member.name)
        return job

    def renew(self, job: JobPlan) -> JobPlan:
        """Give a job new generations, for members that lost their state, and start all its members in them.

        What they were pushing and pulling is over: NICs are reset, as a request would go on in the new generation.
        """
        renewed = job.renewed(self._allocator)
        for name in [*job.workers, *([job.root] if job.root else [])]:
            member = self.hosts[name]
            if isinstance(member, NicHost):
                member.driver.soft_reset()
        for old, new in zip(switch_configs(job, self.topology), switch_configs(renewed, self.topology), strict=True):
            take_off(old, self.programs[old.switch])
            write_config(new, self.programs[new.switch])
        for name in [*renewed.workers, *([renewed.root] if renewed.root else [])]:
            self.join(renewed, name)
        return renewed

    def join(self, job: JobPlan, host: str) -> None:
        """Start a member's streams."""
        member = self.hosts[host]
        if isinstance(member, NicHost):
            member.join(job, self._switch_of(host), self.timing(job))
        else:
            member.join(job)

    def timing(self, job: JobPlan) -> Timing:
        """The timers of a job's NICs."""
        parents = {branch.switch: branch.parent for branch in job.tree}
        depth = 0
        for branch in job.tree:
            hops, at = 1, branch.parent
            while at is not None:
                hops, at = hops + 1, parents[at.switch]
            depth = max(depth, hops)
        return Timing.of(self.link, self.switch_model, lanes=job.lanes, slots=job.slots, depth=depth)

    # ---- parts -----------------------------------------------------------------------------------------------

    def _switch_of(self, host: str) -> PlannedSwitch:
        return self.topology.switch(self.topology.host(host).link.switch)

    def _vector_bytes(self, host: str) -> int:
        return self._switch_of(host).lanes * LANE_BYTES

    def _add_host(self, name: str, kind: Kind, number: int) -> None:
        where = self.topology.host(name)
        if kind is Kind.SOFTWARE:
            member = MemberHost(self._machine, where, self._stack_model)
            self.hosts[name] = member
            end = self._native.Socket(member.device)
        else:
            role = Role.ROOT if kind is Kind.ROOT else Role.WORKER
            nic = NicHost(
                self._machine, where, role, number=number, model=self._host_model, seed=self._bits(32),
                parameters=self._parameters, waves=self._waves and self._waves / f"{name}.fst",
            )  # fmt: skip
            self._exits.callback(nic.close)
            self.hosts[name] = nic
            end = self._native.Socket(nic.device)
        self.cables[name] = self._connect(end, self._port(where.link))

    def _add_memory(self, name: str, model: RingModel) -> None:
        memory = MemoryDevice(self._machine, name, model, self._bits(32))
        self._exits.callback(memory.close)
        self.memories[name] = memory

    def _close_ring(self, model: RingModel) -> None:
        count = len(self.memories)
        if not count:
            return
        timing = self._native.LineTiming(byte=model.byte_picos, latency=int(model.latency_ns * PICOS_PER_NANO))
        self._machine.close_ring(timing)
        for place, (name, memory) in enumerate(self.memories.items()):
            memory.take_place(place, count, model.least_segment)
            links = self._machine.link(place, True), self._machine.link(place, False)
            self.links[name] = links

    def _port(self, port: PortRef) -> Any:
        return self._native.Socket(self.switches[port.switch], port.port)

    def _connect(self, a: Any, b: Any) -> Cable:
        timing = self._native.LineTiming(byte=self.link.byte_picos, latency=int(self.link.latency_ns * PICOS_PER_NANO))
        return Cable(*self._machine.connect(a, b, timing))

    def _bits(self, count: int) -> int:
        return self._random.getrandbits(count) | 1


def digest(machine: Machine) -> tuple[int, ...]:
    """The digest of every frame on every line and its time: equal runs have equal ones."""
    return tuple(int(line.digest) for cable in machine.cables.values() for line in (cable.up, cable.down))
