"""The registers of luwu.p4 as the model's state implies them."""

from __future__ import annotations

from sim.golden.switch_jobs import Slot, Window
from sim.golden.switch_model import SwitchModel
from wire.generated.constants import Flag


def _flags(slot: Slot) -> int:
    if not slot.contributions:
        return 0
    return (Flag.SAT if slot.saturated() else 0) | (0 if slot.next_exp_valid() else Flag.EXPV)


def _window(window: Window) -> int:
    return window.gen << 64 | window.ack << 32 | window.credit


def register_view(model: SwitchModel) -> dict[str, list[int]]:
    """Alias -> every cell."""
    slots = model.slots.slots
    sums = [slot.sums() if slot.contributions else (0,) * model.lanes for slot in slots]
    view = {
        "tag": [slot.gen << 32 | slot.seq for slot in slots],
        "bitmap": [slot.workers for slot in slots],
        "next_exp": [slot.next_exp() % 256 if slot.contributions else 0 for slot in slots],
        "slot_flags": [_flags(slot) for slot in slots],
        "last": [_window(model.heartbeats.last.get(job, Window())) for job in range(model.job_rows)],
    }
    for lane in range(model.lanes):
        view[f"lane{lane}.sum"] = [row[lane] for row in sums]
    for worker in range(model.max_workers):
        said = (model.heartbeats.heard.get((job, 1 << worker), Window()) for job in range(model.job_rows))
        view[f"worker{worker}.heartbeat"] = [_window(window) for window in said]
    return view
