"""Plans a ring, a rail whose members add up among themselves: addresses and a stream, and nothing on any switch."""

from __future__ import annotations

from collections.abc import Sequence

from catchment.controlplane.jobs.allocation import Allocator
from catchment.controlplane.jobs.errors import JobError
from catchment.controlplane.jobs.kinds.allreduce import ALLREDUCE
from catchment.controlplane.jobs.plan import JobPlan, RingPlan, StreamPlan
from catchment.controlplane.jobs.rails import choose_rail
from catchment.controlplane.topology import Topology
from catchment.wire.generated.constants import MAX_PARAM_BYTES, Mode

LEAST = 2
"""Members of a ring."""


def plan_ring(
    topology: Topology, *, name: str, workers: Sequence[str], rail: str, lanes: int, slots: int, allocator: Allocator
) -> JobPlan:
    """Plan a part of an all-reduce job that goes round a ring, in the order of the workers.

    Args:
        topology: where.
        name: of the job.
        workers: host names, index by position.
        rail: name of a ring of the topology.
        lanes: of the job's other rails.
        slots: T, vectors in flight, a power of two.
        allocator: shared between the jobs of a topology.

    Raises:
        JobError: fewer than two workers, or one of them has no NIC on the rail that the ring is over.
    """
    ring = topology.rings[rail]
    if len(workers) < LEAST:
        raise JobError(f"job {name}: {len(workers)} worker; the ring {rail} needs {LEAST}")
    choose_rail(f"{name} (the ring {rail})", topology, workers, ring.over, allocator.load)
    plane = topology.plane(ring.over)
    nics = [plane.host(worker) for worker in workers]
    following = [*nics[1:], nics[0]]
    stream = StreamPlan(ALLREDUCE.streams[0].name, allocator.generation(), Mode.ALLREDUCE, slots, ())
    return JobPlan(
        name=name,
        kind=ALLREDUCE.name,
        topology=topology.name,
        workers=tuple(workers),
        root=None,
        lanes=lanes,
        slots=slots,
        param_bytes=MAX_PARAM_BYTES,
        ports={worker: allocator.port(worker) for worker in workers},
        addresses={nic.name: (str(nic.ip.ip), str(after.ip.ip)) for nic, after in zip(nics, following, strict=True)},
        tree=(),
        streams=(stream,),
        rail=rail,
        rates={nic.name: nic.rate for nic in nics if nic.rate},
        ring=RingPlan(ring.transport, tuple(dict.fromkeys(nic.link.switch for nic in nics))),
    )
