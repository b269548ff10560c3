"""A host whose member is the endpoint of host/, in software, on the machine's time."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from catchment.controlplane.jobs import JobPlan
from catchment.controlplane.topology import Host
from catchment.host import EndpointError, Stream, _native
from catchment.sim.cosim.errors import CosimError
from catchment.sim.cosim.models import PICOS_PER_NANO, StackModel
from catchment.wire.generated.constants import DataType, Flag

_NANOS = 1e9
_ITEM = {DataType.BYTES: 1, DataType.INT32: 4, DataType.FP32: 4, DataType.FP16: 2, DataType.BF16: 2}


class MemberTransfer:
    """A push or pull of an endpoint."""

    def __init__(
        self, host: MemberHost, kind: str, request: _native.Request, memory: NDArray[np.uint8], dtype: DataType
    ) -> None:
        self.host = host
        self.kind = kind
        self.dtype = dtype
        self.request = request
        self._memory = memory
        self._watch = host.device.watch(request)

    @property
    def done(self) -> bool:
        """It completed or failed."""
        return bool(self.request.done)

    @property
    def finished_ns(self) -> float:
        """The time at which it was done, on the machine's clock.

        Raises:
            CosimError: it is not.
        """
        if not self.done:
            raise CosimError(f"the {self.kind} of {self.host.name} is under way: finish it first")
        return float(self._watch.at) / PICOS_PER_NANO

    def check(self) -> bytes:
        """Its bytes, once it has succeeded.

        Raises:
            EndpointError: it failed.
            CosimError: it is under way.
        """
        if not self.done:
            raise CosimError(f"the {self.kind} of {self.host.name} is under way: finish it first")
        failure = self.request.failure
        if failure is not None:
            raise EndpointError(**failure)
        return self._memory.tobytes()

    @property
    def flags(self) -> Flag:
        """The flags of its frames, ORed."""
        return Flag(self.request.flags)

    @property
    def latency_ns(self) -> int:
        """The time from the call to its end."""
        return round(self.request.latency * _NANOS)

    def release(self) -> None:
        """The same as of a NIC's; memory is freed by itself."""


class MemberHost:
    """One machine; made by `Machine`.

    Attributes:
        device: the native side: its member at the end of a cable.
    """

    def __init__(self, world: Any, host: Host, model: StackModel) -> None:
        self.name = host.name
        self.where = host
        self._world = world
        self.device = world.add_member(
            receive=int(model.receive_ns * PICOS_PER_NANO), frame=int(model.frame_ns * PICOS_PER_NANO),
            ring_bytes=model.ring_bytes, ring_frames=model.ring_frames,
        )  # fmt: skip

    def join(self, job: JobPlan, *, timeout: float = 1.0) -> None:
        """Start this host's streams of a job; without progress for `timeout` seconds it fails."""
        description = job.describe(self.name)
        names = {"gradients": "gradients", "parameters": "parameters", "sums": "stream"}
        streams = {ours: asdict(Stream(**description[name])) for name, ours in names.items() if name in description}
        self.device.join(
            self._world,
            {"role": description["role"], "wid": description["wid"], "window": 0, "streams": streams,
             "local": tuple(description["local"]), "switch": tuple(description["switch"]), "timeout": timeout},
        )  # fmt: skip

    def push(
        self, values: NDArray[Any] | bytes, dtype: DataType, exponent: int = 0, *, block: bool = False
    ) -> MemberTransfer:
        """Send a copy of `values`; `exponent`: the shared E of floats; `block`: each vector's own, agreed on."""
        raw = np.frombuffer(values if isinstance(values, bytes) else values.tobytes(), np.uint8).copy()
        request = self.device.push(self._world, raw.ctypes.data, raw.size // _ITEM[dtype], int(dtype), exponent, block)
        return MemberTransfer(self, "push", request, raw, dtype)

    def pull(self, size: int, dtype: DataType, *, block: bool = False) -> MemberTransfer:
        """Receive the next message, of `size` bytes; `block` as it was pushed."""
        raw = np.zeros(size, np.uint8)
        request = self.device.pull(self._world, raw.ctypes.data, size // _ITEM[dtype], int(dtype), block)
        return MemberTransfer(self, "pull", request, raw, dtype)

    def statistics(self) -> dict[str, Any]:
        """The endpoint's counters (docs/reference/endpoint.md)."""
        counts: dict[str, Any] = self.device.stats()
        return counts
