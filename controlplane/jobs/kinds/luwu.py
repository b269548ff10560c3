"""Gradients up to the optimizer node, parameters down from it (LuWu, section 3)."""

from catchment.controlplane.jobs.kind import Kind, StreamKind, register
from catchment.wire.generated.constants import Mode

LUWU = register(
    Kind(
        name="luwu",
        summary="sums to the root, parameters back",
        program="luwu.p4",
        streams=(StreamKind("gradients", Mode.REDUCE, packs=True), StreamKind("parameters", Mode.BCAST)),
        role="worker",
        has_root=True,
    )
)
