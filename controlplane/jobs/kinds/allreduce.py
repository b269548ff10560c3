"""Every worker gets the sum of all; with `control`, beside it a stream of few slots for what the ranks agree on."""

from catchment.controlplane.jobs.kind import Kind, StreamKind, register
from catchment.wire.generated.constants import Mode

CONTROL_SLOTS = 8

ALLREDUCE = register(
    Kind(
        name="allreduce",
        summary="every worker gets the sum of all",
        program="luwu.p4",
        streams=(
            StreamKind("sums", Mode.ALLREDUCE, packs=True, keys_follow=True),
            StreamKind("control", Mode.ALLREDUCE, slots=CONTROL_SLOTS, optional=True),
        ),
        role="peer",
    )
)
