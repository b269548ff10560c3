"""What is drawn: endpoints of host/ around luwu.p4 on simulated cables, whose frames are looked at."""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Iterator

import numpy as np

from catchment.demo.pictures.sequence import Arrow, Diagram
from catchment.host.optimizer import Adam
from catchment.sim.cosim import Faults, Machine
from catchment.sim.cosim.cable import Sighting
from catchment.sim.cosim.machine import Transfer
from catchment.sim.golden.optimizers import Moments, step
from catchment.wire.generated.constants import HEADER_BYTES, HEADER_OFFSET, DataType, Flag, Header, PacketType

_SWITCH, _ROOT = "switch", "optimizer"
_WORKERS = {"w0": "worker 0", "w1": "worker 1"}
_ACTORS = (*_WORKERS.values(), _SWITCH, _ROOT)
_LANES, _SLOTS, _EXPONENT = 8, 4, 1
_BURST_CLOCKS = 1000  # 4 us: a frame and what it causes at once
_PICOS_PER_MILLI = 1e9
_BETWEEN = 124
_LOSSY_SEED = 4  # of cables that lose a vector on its way up and a sum on its way down


class _Played:
    """A LuWu job of two workers, and a picture of the frames of some types between its members.

    Args:
        machine: with the hosts w0, w1 and opt.
        diagram: where frames are drawn.
        types: which are drawn.
        stream: only frames of this stream are drawn; of all when left out.
    """

    def __init__(
        self, machine: Machine, diagram: Diagram, types: Collection[PacketType], stream: str | None = None
    ) -> None:
        self.machine, self.diagram = machine, diagram
        self._types = types
        self._job = machine.luwu(list(_WORKERS), "opt", slots=_SLOTS)
        self._gens = {each.gen for each in self._job.streams if stream in {None, each.name}}

    def run(self, transfers: Iterable[Transfer]) -> Iterator[tuple[Header, ...]]:
        """Let time pass until the transfers are done; yields the frames that were drawn of each burst."""
        left = list(transfers)
        with self.machine.sighted() as seen:
            while left:
                self.machine.run(_BURST_CLOCKS)
                drawn = tuple(filter(None, map(self._draw, seen())))
                if drawn:
                    yield drawn
                left = [transfer for transfer in left if not transfer.done]

    def slot(self) -> str:
        """What the switch has in slot 0 of the gradients."""
        base = self._job.stream("gradients").share("s1").base
        program = self.machine.programs["s1"]
        workers, total = (program.read_register(name, base) for name in ("bitmap", "lane0.sum"))
        return f"slot 0: workers {workers:02b}, sum {total}"

    def _draw(self, sighting: Sighting) -> Header | None:
        header = Header.unpack(sighting.frame, HEADER_OFFSET)
        silent = header.type == PacketType.MH and header.ack == 0  # before anything was acknowledged
        if header.type not in self._types or header.gen not in self._gens or silent:
            return None
        ends = (_WORKERS.get(sighting.cable, _ROOT), _SWITCH)
        source, target = ends if sighting.up else ends[::-1]
        time = f"{sighting.picos / _PICOS_PER_MILLI:.2f} ms" if self.diagram.timed else ""
        self.diagram.add(Arrow(source, target, _text(header, sighting.frame), lost=sighting.lost), time=time)
        return header


def _text(header: Header, frame: bytes) -> str:
    """What a frame says, as an arrow's label: of a vector its first lane, of parameters the first of them."""
    kind = PacketType(header.type).name
    match header.type:
        case PacketType.PA | PacketType.FA:
            (lane,) = struct.unpack_from("!i", frame, HEADER_OFFSET + HEADER_BYTES)
            return f"{kind} {header.seq}: {lane}{' again' if header.flags & Flag.RETX else ''}"
        case PacketType.PARAM:
            (weight,) = struct.unpack_from("<f", frame, HEADER_OFFSET + HEADER_BYTES)
            return f"{kind} {header.seq}: {weight:.4f}"
        case _:
            return f"{kind}: all before {header.ack}"


def _machine(seed: int) -> Machine:
    return Machine.star(2, software=[*_WORKERS, "opt"], lanes=_LANES, slots=256, seed=seed)


def way_of_a_gradient() -> Diagram:
    """A vector of each worker to the optimizer node, and the weights that come back."""
    diagram = Diagram(
        "The way of a gradient: integers to the switch, their sum to the optimizer node, weights to all workers",
        _ACTORS, _BETWEEN,
    )  # fmt: skip
    parts = {host: np.linspace(0.25 * (at + 1), 0, _LANES, dtype=np.float32) for at, host in enumerate(_WORKERS)}
    weights, rule = np.ones(_LANES, np.float32), Adam(lr=0.01)
    with _machine(seed=1) as machine:
        job = _Played(machine, diagram, {PacketType.PA, PacketType.FA, PacketType.PARAM})
        pull = machine["opt"].pull(weights.nbytes, DataType.FP32)
        diagram.add(notes={_WORKERS[host]: f"{part[0]:.2f}, E = {_EXPONENT}" for host, part in parts.items()})
        pushes = [machine[host].push(part, DataType.FP32, _EXPONENT) for host, part in parts.items()]
        for _ in job.run([pull, *pushes]):
            diagram.add(notes={_SWITCH: job.slot()})
        total = np.frombuffer(pull.check(), np.float32)
        new = step(rule, weights, Moments.zeros(_LANES), total, rule.lr, 1 / len(parts))
        diagram.add(notes={_ROOT: f"sum: {total[0]:.2f}"})
        diagram.add(notes={_ROOT: f"Adam: {weights[0]:.2f} to {new[0]:.4f}"})
        pulls = {host: machine[host].pull(new.nbytes, DataType.BYTES) for host in parts}
        for _ in job.run([*pulls.values(), machine["opt"].push(new.tobytes(), DataType.BYTES)]):
            pass
        weights_of = {host: np.frombuffer(each.check(), np.float32) for host, each in pulls.items()}
        diagram.add(notes={_WORKERS[host]: f"weight: {got[0]:.4f}" for host, got in weights_of.items()})
    return diagram


def retransmission() -> Diagram:
    """A vector of each worker on cables that lose one frame in five."""
    diagram = Diagram(
        "A retransmission: a vector that was lost is sent again after a timeout, and whoever was in is not added again",
        _ACTORS, _BETWEEN, timed=True,
    )  # fmt: skip
    parts = {host: np.full(_LANES, 10**at, np.int32) for at, host in enumerate(_WORKERS)}
    with _machine(_LOSSY_SEED) as machine:
        job = _Played(machine, diagram, {PacketType.PA, PacketType.FA, PacketType.MH}, "gradients")
        for cable in machine.cables.values():
            cable.faults(Faults(loss=0.2))
        pull = machine["opt"].pull(4 * _LANES, DataType.INT32)
        pushes = [machine[host].push(part, DataType.INT32) for host, part in parts.items()]
        for headers in job.run([pull, *pushes]):
            if any(header.type == PacketType.PA for header in headers):
                diagram.add(notes={_SWITCH: job.slot()})
        total = np.frombuffer(pull.check(), np.int32)
        diagram.add(notes={_ROOT: f"sum: {total[0]}"})
    return diagram
