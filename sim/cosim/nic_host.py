"""A host whose NIC is Verilated RTL: its memory, the NIC, the NIC's driver."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from catchment.controlplane.client.values import to_int
from catchment.controlplane.jobs import JobPlan
from catchment.controlplane.topology import Host, Switch
from catchment.rtl.driver.memory import PAGE, PinnedMemory
from catchment.rtl.driver.nic import Nic
from catchment.rtl.driver.request import Request
from catchment.rtl.driver.settings import NicSettings, StreamSettings
from catchment.rtl.generated.nic_regs import Role
from catchment.rtl.harness.verilated_nic import VerilatedNic
from catchment.sim.cosim.bus import ClockedBus
from catchment.sim.cosim.errors import CosimError
from catchment.sim.cosim.models import CLOCK_NS, PICOS_PER_NANO, HostModel
from catchment.sim.cosim.timing import Timing
from catchment.wire.generated.constants import DataType, Flag

_VIRTUAL = 0x7F00_0000_0000
_GRADIENTS, _PARAMETERS, _SUMS = "gradients", "parameters", "sums"


class NicTransfer:
    """A push or pull of a NIC."""

    def __init__(self, host: NicHost, request: Request, dtype: DataType) -> None:
        self.host = host
        self.dtype = dtype
        self.request = request
        self.kind = request.kind
        self._watch = host.device.watch(request.record.bytes.ctypes.data)

    @property
    def done(self) -> bool:
        """Its completion record is in memory."""
        return self.request.done

    @property
    def finished_ns(self) -> float:
        """The time at which its record was written, on the machine's clock.

        Raises:
            CosimError: it has not been.
        """
        if self._watch.at == 0:
            raise CosimError(f"the {self.kind} of {self.host.name} is under way: finish it first")
        return float(self._watch.at) / PICOS_PER_NANO

    def check(self) -> bytes:
        """Its bytes, once it has succeeded.

        Raises:
            RequestError: it failed.
            NicError: it has not ended.
        """
        self.request.check()
        return self.request.buffer.bytes.tobytes()

    @property
    def flags(self) -> Flag:
        """The flags of its frames, ORed."""
        return self.request.check().flags

    @property
    def latency_ns(self) -> int:
        """The time from the doorbell to the record, as the NIC measured it."""
        return self.request.check().latency * CLOCK_NS

    def release(self) -> None:
        """Give the memory back."""
        self.host.driver.release(self.request)
        self.host.memory.release(self.request.buffer)


class NicHost:
    """One machine; made by `Machine`.

    Attributes:
        driver: of its NIC; what it offers beyond pushes and pulls is used through it.
        device: the native side: a clocked device at its MAC.
        transfers: all pushes and pulls that were asked for and not released.
    """

    def __init__(
        self, world: Any, host: Host, role: Role, *, number: int, model: HostModel,
        seed: int, parameters: Mapping[str, int] | None, waves: Path | None = None,
    ) -> None:  # fmt: skip
        self.name = host.name
        self.where = host
        self.role = role
        self._array = np.zeros(PAGE * model.pages, np.uint8)
        base = (number + 1) << 32
        self.nic = VerilatedNic(role, self._array, base=base, seed=seed, parameters=parameters, waves=waves)
        self.nic.pace(model.pace)
        self.device = world.add_device(*self.nic.device, model.mac_fifo_bytes)
        self.bus = ClockedBus(world, self.device.registers)
        self.memory = PinnedMemory(
            self._array, _VIRTUAL + PAGE * model.pages * number, tuple(base + PAGE * i for i in range(model.pages))
        )
        self._driver: Nic | None = None

    @property
    def driver(self) -> Nic:
        """The NIC's driver; maps the memory when it is asked for first."""
        if self._driver is None:
            self._driver = Nic(self.bus, self.memory, patience=1 << 16)
        return self._driver

    def join(self, job: JobPlan, switch: Switch, timing: Timing) -> None:
        """Start this host's streams of a job."""
        description = job.describe(self.name)
        wants = {"worker": Role.WORKER, "peer": Role.WORKER, "root": Role.ROOT}.get(description["role"])
        if wants != self.role:
            raise CosimError(
                f"{self.name} is {description['role']} of job {job.name}, and its NIC is a {self.role.name.lower()}'s"
            )
        streams = {
            name: StreamSettings(
                description[name]["gen"], description[name]["base_seq"], description[name]["slots"],
                key=bytes.fromhex(description[name].get("key", "")),
            )
            for name in (_GRADIENTS, _PARAMETERS, _SUMS)
            if name in description
        }  # fmt: skip
        if description["role"] == "peer":
            tx = rx = streams[_SUMS]
        elif description["role"] == "worker":
            tx, rx = streams[_GRADIENTS], streams[_PARAMETERS]
        else:
            tx, rx = streams[_PARAMETERS], streams[_GRADIENTS]
        lanes = self.driver.vector_bytes // 4
        if job.lanes != lanes:
            raise CosimError(f"job {job.name} has {job.lanes} lanes, the NIC of {self.name} is built for {lanes}")
        wid, (local_ip, local_port), (switch_ip, switch_port) = (description[it] for it in ("wid", "local", "switch"))
        self.driver.configure(
            NicSettings(
                tx, rx, len(job.workers),
                local_mac=to_int(self.where.mac, 48, "mac"), local_ip=to_int(local_ip, 32, "ip"),
                local_port=local_port, peer_mac=to_int(switch.mac, 48, "mac"),
                peer_ip=to_int(switch_ip, 32, "ip"), peer_port=switch_port, wid=wid,
                rto=timing.rto, rto_most=timing.rto_most, resend_delay=timing.resend_delay * wid,
                heartbeat_interval=timing.heartbeat, packed=job.packed,
            )
        )  # fmt: skip
        self.driver.start(all_reduce=description["role"] == "peer")

    def push(
        self, values: NDArray[Any] | bytes, dtype: DataType, exponent: int = 0, *, block: bool = False
    ) -> NicTransfer:
        """Copy `values` to pinned memory and send them; `exponent`, `block` as for `Nic.push`."""
        raw = np.frombuffer(values if isinstance(values, bytes) else values.tobytes(), np.uint8)
        buffer = self.memory.allocate(raw.size)
        buffer.bytes[:] = raw
        return NicTransfer(self, self.driver.push(buffer, dtype, exponent, block=block), dtype)

    def pull(self, size: int, dtype: DataType, *, block: bool = False) -> NicTransfer:
        """Receive the next message, of `size` bytes in host memory; `block` as it was pushed."""
        return NicTransfer(self, self.driver.pull(self.memory.allocate(size), dtype, block=block), dtype)

    def close(self) -> None:
        """Delete the NIC.

        Raises:
            BusError: it broke AXI4's rules in its life.
        """
        self.nic.__exit__(None, None, None)
