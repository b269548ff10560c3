"""An all-reduce of a few small vectors on switches that run p4sgd.p4 (`host.AllReducer`)."""

from catchment.controlplane.jobs.kind import Kind, StreamKind, register
from catchment.wire.generated.constants import Mode

SLOTS = register(
    Kind(
        name="slots",
        summary="allreduce of few values, on p4sgd.p4",
        program="p4sgd.p4",
        streams=(StreamKind("sums", Mode.ALLREDUCE),),
        role="slots",
        two_steps=True,
    )
)
