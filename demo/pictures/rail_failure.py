"""What is drawn: a rail's failure. Two workers on two rails, and the link of one of them to the second rail is cut."""

from __future__ import annotations

from catchment.checkout import ROOT
from catchment.controlplane.jobs import Allocator, JobRequest
from catchment.controlplane.topology import Topology
from catchment.demo.pictures.by_hand import HandJob, running_switches
from catchment.demo.pictures.sequence import Arrow, Diagram
from catchment.sim.golden.rails import RailHealth, Record
from catchment.wire.rail_labels import control_label, spare_label

_WORKERS = {"w0": "worker 0", "w1": "worker 1"}
_RAILS = {"a": "switch a", "b": "switch b"}
_ACTORS = (_WORKERS["w0"], *_RAILS.values(), _WORKERS["w1"])
_VALUES = {"w0": 1, "w1": 10}
_CUT = ("w1", "b")
_RAIL_A, _RAIL_B = 0b01, 0b10


class _Group:
    """A job on both rails, with what it takes for one to fail, and a picture of its frames."""

    def __init__(self, diagram: Diagram) -> None:
        topology = Topology.load(ROOT / "sim" / "topologies" / "two-rails.yaml")
        request = JobRequest("sums", "allreduce", list(_WORKERS), slots=8, rails=tuple(_RAILS))
        group = request.plan(topology, Allocator(topology))
        switches, plans = running_switches(topology, group.switches), group.parts
        self._jobs = {label: HandJob(plan, topology.plane(plan.rail), switches) for label, plan in plans.items()}
        self._rails = {label: str(plan.rail) for label, plan in plans.items()}
        self._diagram = diagram
        self._cut = False

    def send(self, part: str, host: str, seq: int, value: int, *, breaks: bool = False) -> int:
        """Send a worker's vector to the switch of a part; `breaks`: the link is cut behind it.

        Returns:
            The sum, if there is one; else 0.
        """
        rail, job = self._rails[part], self._jobs[part]
        lost = self._lost(host, rail)
        self._diagram.add(Arrow(_WORKERS[host], _RAILS[rail], _text(part, f"PA {seq}", value), lost=lost))
        self._cut = self._cut or breaks
        sums = {} if lost else {to: heard.lanes[0] for to, heard in sorted(job.vector(host, seq, value).items())}
        if sums:
            self._diagram.add(
                *(
                    Arrow(_RAILS[rail], _WORKERS[to], _text(part, f"FA {seq}", total), lost=self._lost(to, rail))
                    for to, total in sums.items()
                )
            )
        return max(sums.values(), default=0)

    def note(self, part: str, seq: int) -> None:
        """Say what the switch of a part has of a vector."""
        job = self._jobs[part]
        workers, total = (job.register(name, seq) for name in ("bitmap", "lane0.sum"))
        self._diagram.add(notes={_RAILS[self._rails[part]]: f"{seq}: workers {workers:02b}, sum {total}"})

    def _lost(self, host: str, rail: str) -> bool:
        return self._cut and (host, rail) == _CUT


def _text(part: str, vector: str, value: int) -> str:
    """A vector as an arrow's label; on the control part it is a round, in which each worker has a byte."""
    return f"round: {value:#06x}" if part in map(control_label, _RAILS) else f"{vector}: {value}"


def rail_failure() -> Diagram:
    """A sum that only one worker gets and a vector that is not whole: both go over the other rail's switch."""
    diagram = Diagram(
        "A rail's failure: its stream goes on over the other rail's switch, from the oldest sum that a worker lacks",
        _ACTORS, 134,
    )  # fmt: skip
    group = _Group(diagram)
    for seq in (4, 5):
        for host, value in _VALUES.items():
            group.send("b", host, seq, value, breaks=(host, seq) == ("w1", 4))
        group.note("b", seq)
    diagram.add(notes=dict.fromkeys(_WORKERS.values(), "rail b is late"))
    # In the round each worker sets the bits of the rails that it suspects.
    said = 0
    for rank, host in enumerate(_WORKERS):
        said = group.send(control_label("a"), host, 0, _RAIL_B << 8 * rank)
    records = [Record(2, 0, said >> 8 * rank & 0xFF, settled=_RAIL_A) for rank in range(len(_WORKERS))]
    health = RailHealth(len(_RAILS))
    health.learn(records)
    (carrier,) = health.up
    verdict = f"b over {list(_RAILS.values())[carrier]}"
    diagram.add(notes=dict.fromkeys(_WORKERS.values(), verdict))
    spare = spare_label(list(_RAILS)[carrier], "b")
    for seq in (4, 5):
        for host, value in _VALUES.items():
            group.send(spare, host, seq, value)
        group.note(spare, seq)
    return diagram
