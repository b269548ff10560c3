"""The registers of a program as the model's state implies them."""

from __future__ import annotations

from catchment.sim.golden.slot_model import SlotModel
from catchment.sim.golden.switch_core import SwitchCore
from catchment.sim.golden.switch_jobs import HeartbeatTable, Slot, Window
from catchment.sim.golden.switch_model import SwitchModel
from catchment.wire.generated.constants import Flag


def _flags(slot: Slot) -> int:
    if not slot.contributions:
        return 0
    flags = (Flag.SAT if slot.saturated() else 0) | (0 if slot.next_exp_valid() else Flag.EXPV)
    flags |= Flag.PACKED if slot.packed() else 0
    return flags | (Flag.MIXED if any(one.mixed or not one.packed for one in slot.contributions) else 0)


def _window(window: Window) -> int:
    return window.gen << 64 | window.ack << 32 | window.credit


def _sums(model: SwitchCore, workers: str, tag: str) -> dict[str, list[int]]:
    """What both programs keep of a slot; `tag` and `workers` are what the program calls those two."""
    slots = model.slots.slots
    sums = [slot.sums() if slot.contributions else (0,) * model.lanes for slot in slots]
    return {
        tag: [slot.gen << 32 | slot.seq for slot in slots],
        workers: [slot.workers for slot in slots],
        "next_exp": [slot.next_exp() % 256 if slot.contributions else 0 for slot in slots],
        "slot_flags": [_flags(slot) for slot in slots],
        **{f"lane{lane}.sum": [row[lane] for row in sums] for lane in range(model.lanes)},
    }


def slot_register_view(model: SlotModel) -> dict[str, list[int]]:
    """p4sgd.p4: alias -> every cell."""
    return {
        **_sums(model, "slot_workers.bitmap", "slot_tag.tag"),
        "ack_tag.tag": [acks.gen << 32 | acks.seq for acks in model.acks],
        "ack_workers.bitmap": [acks.workers for acks in model.acks],
        **_heartbeats(model.heartbeats, model),
    }


def register_view(model: SwitchModel) -> dict[str, list[int]]:
    """luwu.p4: alias -> every cell."""
    last = [_window(model.heartbeats.last.get(job, Window())) for job in range(model.job_rows)]
    acked = [gen << 32 | ack for gen, ack in (model.acked.get(job, (0, 0)) for job in range(model.job_rows))]
    view = {**_sums(model, "bitmap", "tag"), "last": last, "acked": acked}
    return {**view, **_heartbeats(model.heartbeats, model)}


def _heartbeats(table: HeartbeatTable, model: SwitchCore) -> dict[str, list[int]]:
    """What each worker has said last."""
    return {
        f"worker{worker}.heartbeat": [
            _window(table.heard.get((job, 1 << worker), Window())) for job in range(model.job_rows)
        ]
        for worker in range(model.max_workers)
    }
