"""A NIC as a program sees it: settings, streams, pushes and pulls, counters."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from catchment.rtl.driver.bus import RegisterBus
from catchment.rtl.driver.errors import NicError
from catchment.rtl.driver.memory import PAGE, Buffer, PinnedMemory
from catchment.rtl.driver.records import RECORD
from catchment.rtl.driver.request import Request
from catchment.rtl.driver.settings import NicSettings, StreamSettings
from catchment.rtl.generated import nic_regs as regs
from catchment.rtl.regmap.model import Register, Table
from catchment.wire.generated.constants import DataType

_ID = 0x4843_5443
_MAP = 4


class Nic:
    """The driver of one NIC.

    Args:
        bus: its registers.
        memory: what requests may name; it is mapped here and after every soft reset.
        patience: how often the driver lets time pass before it gives up waiting.

    Raises:
        NicError: there is no NIC, or one of another register map.
    """

    def __init__(self, bus: RegisterBus, memory: PinnedMemory, *, patience: int = 1_000_000) -> None:
        self._bus = bus
        self._memory = memory
        self._patience = patience
        self._tag = 0
        identity = self.get(regs.ID)["value"]
        if identity != _ID:
            raise NicError(f"register ID reads {identity:#010x}, not {_ID:#010x}: this is no NIC of ours")
        version = self.get(regs.VERSION)["map"]
        if version != _MAP:
            raise NicError(f"the NIC has register map {version}, this driver knows {_MAP}: use the driver of its build")
        self.root = bool(self.get(regs.BUILD)["root"])
        self.vector_bytes = self.get(regs.BUILD)["vector_bytes"]
        self.tag_units = self.get(regs.BUILD)["tag_units"]
        self.window = self.get(regs.CAPACITY)["window"]
        self.block_slots = self.get(regs.BLOCK_SLOTS)["value"]
        self._entries = 1 << self.get(regs.CAPACITY)["tlb_log2"]
        self.map_pages()

    # ---- registers --------------------------------------------------------------------------------------------

    def get(self, register: Register) -> dict[str, int]:
        """Field name -> value."""
        words = [self._bus.read(register.address + 4 * i) for i in range(register.words)]
        return register.unpack(sum(word << 32 * i for i, word in enumerate(words)))

    def set(self, register: Register, **fields: int) -> None:
        """Write a register; a field that is not named gets its reset value."""
        value = register.pack(**fields)
        for i in range(register.words):
            self._bus.write(register.address + 4 * i, value >> 32 * i & 0xFFFF_FFFF)

    def _until(self, condition: Callable[[], bool], what: str) -> None:
        for _ in range(self._patience):
            if condition():
                return
            self._bus.relax()
        raise NicError(f"{what} did not come: look at the NIC's statistics and its link")

    # ---- streams ----------------------------------------------------------------------------------------------

    def configure(self, settings: NicSettings) -> None:
        """End both streams and set everything that they need.

        Raises:
            NicError: a stream has a key, and this NIC was built without tags.
        """
        s = settings
        if (s.tx.key or s.rx.key) and not self.tag_units:
            raise NicError(
                "a stream has a key, and this NIC makes no tags: build it with TAG_UNITS, or plan without tags"
            )
        self.set(regs.CONTROL)
        self._stream(s.tx, regs.TX_GEN, regs.TX_BASE_SEQ, regs.TX_WINDOW, regs.TX_SLOTS)
        self._stream(s.rx, regs.RX_GEN, regs.RX_BASE_SEQ, regs.RX_WINDOW, regs.RX_SLOTS)
        values = (
            (regs.HEADROOM, s.headroom), (regs.WID, s.wid),
            (regs.LOCAL_MAC, s.local_mac), (regs.PEER_MAC, s.peer_mac),
            (regs.LOCAL_IP, s.local_ip), (regs.PEER_IP, s.peer_ip),
            (regs.RTO, s.rto), (regs.RTO_MOST, s.rto_most), (regs.RESEND_DELAY, s.resend_delay),
            (regs.HEARTBEAT_INTERVAL, s.heartbeat_interval),
        )  # fmt: skip
        for register, value in values:
            self.set(register, value=value)
        self.set(regs.PORTS, local=s.local_port, peer=s.peer_port)
        self.set(regs.LANES, packed=s.packed, full=s.full)
        if self.tag_units:
            self._keys(s)

    def _stream(self, s: StreamSettings, *registers: Register) -> None:
        window = min(s.window or self.window, self.window, s.slots)
        for register, value in zip(registers, (s.gen, s.base_seq, window, s.slots), strict=True):
            self.set(register, value=value)

    def _keys(self, s: NicSettings) -> None:
        for register, key in ((regs.TX_KEY, s.tx.key), (regs.RX_KEY, s.rx.key)):
            for at in range(0, len(key), 4):
                self.set(register, value=int.from_bytes(key[at : at + 4], "little"))
        self.set(regs.TAGS, tx=bool(s.tx.key), rx=bool(s.rx.key))

    def start(self, *, all_reduce: bool = False, tx: bool = True, rx: bool = True) -> None:
        """Begin the streams that `configure` set.

        Raises:
            NicError: one does not begin: its generation is 0.
        """
        self.set(regs.CONTROL, tx_enable=tx, rx_enable=rx, all_reduce=all_reduce)

        def begun() -> bool:
            state = self.get(regs.STATE)
            return state["tx_ready"] >= tx and state["rx_ready"] >= rx

        self._until(begun, "the beginning of the streams")

    def stop(self) -> None:
        """End both streams; what they held is forgotten.  A stream that begins again needs a new generation."""
        self.set(regs.CONTROL)

    def soft_reset(self) -> None:
        """Everything but the settings as after power-up: requests are gone without completion, the streams have ended.

        Raises:
            NicError: memory does not let the accesses end that are under way.
        """
        self.set(regs.RESET, soft=1)
        self._until(lambda: not self.get(regs.STATE)["resetting"], "the end of the soft reset")
        self.map_pages()

    # ---- memory -----------------------------------------------------------------------------------------------

    def map_pages(self) -> None:
        """Tell the TLB where the pages of this driver's memory are.

        Raises:
            NicError: two pages share an entry.
        """
        self._until(lambda: bool(self.get(regs.TLB_READY)["value"]), "the TLB")
        taken: dict[int, int] = {}
        for virtual, physical in self._memory.pages():
            other = taken.setdefault(virtual // PAGE % self._entries, virtual)
            if other != virtual:
                raise NicError(
                    f"pages {other:#x} and {virtual:#x} share a TLB entry: pin at most {self._entries} pages in a row"
                )
            self._fill(virtual, physical, present=True)

    def unmap(self, virtual: int) -> None:
        """Take a page out of the TLB; requests that run in it fail."""
        self._fill(virtual, 0, present=False)

    def _fill(self, virtual: int, physical: int, *, present: bool) -> None:
        self.set(regs.TLB_VIRTUAL, value=virtual // PAGE)
        self.set(regs.TLB_PHYSICAL, value=physical // PAGE)
        self.set(regs.TLB_FILL, value=present)

    # ---- requests ---------------------------------------------------------------------------------------------

    def push(self, buffer: Buffer, dtype: DataType, exponent: int = 0, *, block: bool = False) -> Request:
        """Send a buffer.  Waits while the queue is full.

        Args:
            buffer: it belongs to the NIC until the request is done.
            dtype: of its elements.
            exponent: the shared E of a message of floats.
            block: the workers agree on an E for each vector instead; in all-reduce, and all of them and their pulls.
        """
        record = self._record()
        self._until(lambda: self.get(regs.PUSH_FREE)["value"] > 0, "room in the queue of pushes")
        self.set(regs.PUSH_VADDR, value=buffer.virtual)
        self.set(regs.PUSH_LEN, value=buffer.bytes.size)
        self.set(regs.PUSH_COMPLETION, value=record.virtual)
        self.set(regs.PUSH_FORMAT, dtype=dtype, exponent=exponent, tag=self._next_tag())
        self.set(regs.PUSH_SCALING, block=block)
        self.set(regs.PUSH_RING, value=1)
        return Request("push", buffer, record)

    def pull(self, buffer: Buffer, dtype: DataType, *, block: bool = False) -> Request:
        """Receive the next message into a buffer of its length, `block` as it was pushed."""
        record = self._record()
        self._until(lambda: self.get(regs.PULL_FREE)["value"] > 0, "room in the queue of pulls")
        self.set(regs.PULL_VADDR, value=buffer.virtual)
        self.set(regs.PULL_LEN, value=buffer.bytes.size)
        self.set(regs.PULL_COMPLETION, value=record.virtual)
        self.set(regs.PULL_FORMAT, dtype=dtype, tag=self._next_tag())
        self.set(regs.PULL_SCALING, block=block)
        self.set(regs.PULL_RING, value=1)
        return Request("pull", buffer, record)

    def wait(self, request: Request) -> None:
        """Wait until it is done, which may be a failure.

        Raises:
            NicError: it takes too long.
        """
        self._until(lambda: request.done, f"the completion of the {request.kind}")

    def release(self, request: Request) -> None:
        """Forget a request that is done: its completion record is used again.

        Raises:
            NicError: it is under way.
        """
        if not request.done:
            raise NicError(f"the {request.kind} is under way: wait for it, or reset the NIC first")
        self._memory.release(request.record)

    def _record(self) -> Buffer:
        record = self._memory.allocate(RECORD.itemsize)
        record.bytes[:] = np.uint8(regs.Status.PENDING)
        return record

    def _next_tag(self) -> int:
        self._tag = self._tag + 1 & 0xFFFF
        return self._tag

    # ---- counters ---------------------------------------------------------------------------------------------

    def statistic(self, which: regs.Statistic | regs.HostStatistic, offset: int = 0) -> int:
        """One counter, up to 64 clocks late; `offset` is a Reject or a Status for REJECTS and STATUS."""
        table = regs.STATISTICS if isinstance(which, regs.Statistic) else regs.HOST_STATISTICS
        return self._counter(table, which + offset)

    def _counter(self, table: Table, index: int) -> int:
        address = table.address + 4 * table.words * index
        return self._bus.read(address) | self._bus.read(address + 4) << 32

    def statistics(self) -> dict[str, int]:
        """Counters by name: `rejects.<reason>`, `status.<status>`, `tags_lost`, the transport's, the host side's."""
        counts: dict[str, int] = {}
        for which in regs.Statistic:
            if which != regs.Statistic.REJECTS:
                counts[which.name.lower()] = self.statistic(which)
        for reason in regs.Reject:
            if reason != regs.Reject.NONE:
                counts[f"rejects.{reason.name.lower()}"] = self.statistic(regs.Statistic.REJECTS, reason)
        for host in regs.HostStatistic:
            if host != regs.HostStatistic.STATUS:
                counts[host.name.lower()] = self.statistic(host)
        for status in regs.Status:
            if status != regs.Status.PENDING:
                counts[f"status.{status.name.lower()}"] = self.statistic(regs.HostStatistic.STATUS, status)
        counts["tags_lost"] = self.get(regs.TAGS_LOST)["value"]
        return counts

    # ---- interrupts -------------------------------------------------------------------------------------------

    def enable_irq(self, *names: str) -> None:
        """Which events raise the line, by the fields of IRQ; none: no interrupts."""
        self.set(regs.IRQ_ENABLE, mask=regs.IRQ.pack(**dict.fromkeys(names, 1)))

    def take_irq(self) -> frozenset[str]:
        """The events since the last call, which are acknowledged."""
        events = frozenset(name for name, happened in self.get(regs.IRQ).items() if happened)
        self.set(regs.IRQ, **dict.fromkeys(events, 1))
        return events
