"""What is drawn: exchanges between two workers and luwu.p4. Answers and slots are what the switch says."""

from __future__ import annotations

from collections.abc import Collection

from catchment.checkout import ROOT
from catchment.controlplane.jobs import plan_job
from catchment.controlplane.topology import star
from catchment.demo.pictures.by_hand import HandJob, running_switches
from catchment.demo.pictures.sequence import Arrow, Diagram

_SWITCH, _SLOTS = "switch", 4
_LEFT, _RIGHT = WORKERS = ("worker 0", "worker 1")
_ACTORS = (_LEFT, _SWITCH, _RIGHT)


def two_workers(program: str, kind: str) -> HandJob:
    """A job of one stream and four slots on a program of p4src/."""
    topology = star(WORKERS, program=ROOT / "p4src" / program, lanes=8, slots=256)
    job = plan_job(kind, topology, name="job", workers=WORKERS, slots=_SLOTS)
    return HandJob(job, topology, running_switches(topology, topology.switches))


def slot_over_time() -> Diagram:
    """A vector of each worker: one is lost on its way up and one sum on its way down, and both are sent again."""
    diagram = Diagram(
        "A slot over time: a lost vector and a lost sum are sent again, and nothing counts twice", _ACTORS
    )
    job = two_workers("luwu.p4", "allreduce")

    def send(worker: str, text: str, *, lost: bool = False, lost_down: Collection[str] = ()) -> None:
        value = 10 ** WORKERS.index(worker)
        answers = {} if lost else job.vector(worker, 0, value)
        state = f"slot 0: workers {job.register('bitmap', 0):02b}, sum {job.register('lane0.sum', 0)}"
        up = Arrow(worker, _SWITCH, f"{text}: {value}", lost=lost)
        diagram.add(up, notes={} if answers else {_SWITCH: state})
        if answers:
            down = [
                Arrow(_SWITCH, to, f"sum {heard.lanes[0]}", lost=to in lost_down)
                for to, heard in sorted(answers.items())
            ]
            diagram.add(*down, notes={_SWITCH: state})

    send(_LEFT, "vector 0")
    send(_RIGHT, "vector 0", lost=True)
    send(_LEFT, "timeout: vector 0")
    send(_RIGHT, "timeout: vector 0", lost_down=(_LEFT,))
    send(_LEFT, "timeout: vector 0")
    return diagram


def heartbeat_minimum() -> Diagram:
    """Heartbeats of two workers; the switch passes on the least, when it has moved and whenever worker 0 speaks."""
    diagram = Diagram("Heartbeats: the switch passes on the least of what the workers have and have room for", _ACTORS)
    job, least = two_workers("luwu.p4", "allreduce"), "nothing is known of worker 1"
    for worker, ack, credit in [
        (_LEFT, 1, 5), (_RIGHT, 1, 5), (_LEFT, 2, 6), (_LEFT, 3, 7), (_RIGHT, 2, 6), (_RIGHT, 3, 7),
    ]:  # fmt: skip
        answers = job.heartbeat(worker, ack, credit)
        diagram.add(Arrow(worker, _SWITCH, f"has {ack}, room to {credit}"), notes={} if answers else {_SWITCH: least})
        if answers:
            headers = {to: heard.header for to, heard in sorted(answers.items())}
            down = [Arrow(_SWITCH, to, f"all have {h.ack}, room to {h.credit}") for to, h in headers.items()]
            least = f"the least: {min(h.ack for h in headers.values())}, {min(h.credit for h in headers.values())}"
            diagram.add(*down, notes={_SWITCH: least})
    return diagram


def round_of_p4sgd() -> Diagram:
    """A round of two workers on p4sgd.p4: sums, then acknowledgements, one of whose confirmations is lost."""
    diagram = Diagram(
        "A round of P4SGD: vectors are added and answered, acknowledgements counted and confirmed", _ACTORS
    )
    job = two_workers("p4sgd.p4", "slots")

    def state() -> str:
        sent, have = job.register("slot_workers.bitmap", 3), job.register("ack_workers.bitmap", 3)
        return f"slot 3: sent {sent:02b}, sum {job.register('lane0.sum', 3)}, have it {have:02b}"

    def step(worker: str, text: str, answers: Collection[str], answer: str, lost_down: str = "") -> None:
        diagram.add(Arrow(worker, _SWITCH, text), notes={} if answers else {_SWITCH: state()})
        if answers:
            down = [Arrow(_SWITCH, to, answer, lost=to == lost_down) for to in sorted(answers)]
            diagram.add(*down, notes={_SWITCH: state()})

    for worker, value in zip(WORKERS, (1, 10), strict=True):
        answers = job.vector(worker, 3, value)
        step(worker, f"PA 3: {value}", answers, f"FA 3: {job.register('lane0.sum', 3)}")
    for worker, lost, text in [(_LEFT, "", "ACK 3"), (_RIGHT, _LEFT, "ACK 3"), (_LEFT, "", "timeout: ACK 3")]:
        step(worker, text, job.acknowledge(worker, 3), "CNF 3", lost)
    return diagram
