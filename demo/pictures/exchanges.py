"""What is drawn: exchanges between two workers and luwu.p4. Answers and slots are what the switch says."""

from __future__ import annotations

from collections.abc import Collection

from catchment.demo.pictures.by_hand import WORKERS, TwoWorkers
from catchment.demo.pictures.sequence import Arrow, Diagram

_LEFT, _SWITCH, _RIGHT = "worker 0", "switch", "worker 1"
_ACTORS = (_LEFT, _SWITCH, _RIGHT)
_NAMES = {0: _LEFT, 1: _RIGHT}


def slot_over_time() -> Diagram:
    """A vector of each worker: one is lost on its way up and one sum on its way down, and both are sent again."""
    diagram = Diagram(
        "A slot over time: a lost vector and a lost sum are sent again, and nothing counts twice", _ACTORS
    )
    job = TwoWorkers()

    def send(worker: int, text: str, *, lost: bool = False, lost_down: Collection[int] = ()) -> None:
        up = Arrow(_NAMES[worker], _SWITCH, text, lost=lost)
        answers = {} if lost else job.vector(worker, 0, 10**worker)
        slot = job.slot(0)
        state = f"slot 0: workers {slot.workers:0{WORKERS}b}, sum {slot.total}"
        if not answers:
            diagram.add(up, note=state)
            return
        diagram.add(up)
        down = [
            Arrow(_SWITCH, _NAMES[to], f"sum {total}", lost=to in lost_down) for to, total in sorted(answers.items())
        ]
        diagram.add(*down, note=state)

    send(0, "vector 0: 1")
    send(1, "vector 0: 10", lost=True)
    send(0, "timeout: vector 0: 1")
    send(1, "timeout: vector 0: 10", lost_down=(0,))
    send(0, "timeout: vector 0: 1")
    return diagram


def heartbeat_minimum() -> Diagram:
    """Heartbeats of two workers; the switch passes on the least, when it has moved and whenever worker 0 speaks."""
    diagram = Diagram("Heartbeats: the switch passes on the least of what the workers have and have room for", _ACTORS)
    job, least = TwoWorkers(), "nothing is known of worker 1"
    for worker, ack, credit in [(0, 1, 5), (1, 1, 5), (0, 2, 6), (0, 3, 7), (1, 2, 6), (1, 3, 7)]:
        answers = job.heartbeat(worker, ack, credit)
        up = Arrow(_NAMES[worker], _SWITCH, f"has {ack}, room to {credit}")
        if not answers:
            diagram.add(up, note=least)
            continue
        diagram.add(up)
        down = [Arrow(_SWITCH, _NAMES[to], f"all have {a}, room to {c}") for to, (a, c) in sorted(answers.items())]
        least = f"the least: {min(c for _, c in answers.values())}"
        diagram.add(*down, note=least)
    return diagram
