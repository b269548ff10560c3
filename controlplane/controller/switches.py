"""One switch under the controller: connected, watched, restored after a restart, sampled."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from enum import StrEnum

from catchment.controlplane.client import SwitchClient, SwitchError
from catchment.controlplane.client.channel import parse
from catchment.controlplane.controller.keeper import Keeper
from catchment.controlplane.controller.settings import Timing
from catchment.controlplane.diagnosis.waiting import Sample, sample
from catchment.controlplane.metrics.durations import Durations
from catchment.controlplane.networks.life import NetworkLife
from catchment.controlplane.programs.pipeline_config import PipelineConfig
from catchment.controlplane.state.desired import Differences, SwitchConfig, write

_log = logging.getLogger(__name__)

_PROBE_SECONDS = 0.05
_RETRY_SECONDS = 1.0
SAMPLE_SECONDS = 0.4
_SAMPLES = 4
_LEAST_PAUSE = 20
"""The pause between two comparisons is as many times what one takes, so that large tables do not fill the processor."""


def _take_error(look: asyncio.Task[Sample]) -> None:
    """A look outlives who waits for it when the controller ends while the switch hangs: its error is nobody's then."""
    if not look.cancelled():
        look.exception()


class SwitchState(StrEnum):
    """How far a switch is."""

    DOWN = "down"
    RESTORING = "restoring"
    UP = "up"


class SwitchAgent:
    """Keeps one switch as it should be.

    Args:
        name: of the switch.
        address: of its P4Runtime server.
        device_id: P4Runtime device id.
        program: what it must run.
        wanted: all that it should hold; called in a thread.
        compare: makes it hold that, through a client, and says what had to be done; called in a thread.
        changed: called in the event loop after every change of `state`.
        keeper: what people put on it.
        timing: how soon things are noticed.
        network: the emulated network that it is in; None where it is in none.

    Attributes:
        state: how far it is.
        detail: why it is not up.
        restores: how often its program had to be loaded.
        restore_seconds: how long that took the last time.
        restore_times: how long that took each time.
        compare_times: how long the comparisons took.
        comparisons: how often it was compared with what it should hold, while it was connected.
        repairs: how often it held something else than it should, while it was connected.
        remark: what an operator should know of it although it is up.
        lock: held while anything is written; take it before using `client`.
    """

    def __init__(
        self,
        name: str,
        address: str,
        device_id: int,
        *,
        program: PipelineConfig,
        wanted: Callable[[], Iterable[SwitchConfig]],
        compare: Callable[[SwitchClient], Differences],
        changed: Callable[[], None],
        keeper: Keeper,
        timing: Timing,
        network: NetworkLife | None = None,
    ) -> None:
        self.name = name
        self.address = address
        self.state = SwitchState.DOWN
        self.detail = f"switch {name} ({address}) has not answered yet"
        self.restores = 0
        self.restore_seconds = 0.0
        self.restore_times = Durations()
        self.compare_times = Durations()
        self.comparisons = 0
        self.repairs = 0
        self.remark = ""
        self.lock = asyncio.Lock()
        self._device_id = device_id
        self._program = program
        self._wanted = wanted
        self._compare = compare
        self._changed = changed
        self._keeper = keeper
        self._network = network
        self._timeout = timing.request
        self._hang = timing.hang
        self._compare_seconds = timing.compare
        self._next_compare = 0.0
        self._compared_term: int | None = None
        self._failure = ""
        self._client: SwitchClient | None = None
        self._lost = asyncio.Event()
        self._samples: deque[tuple[float, Sample]] = deque(maxlen=_SAMPLES)

    @property
    def client(self) -> SwitchClient | None:
        """The connection, while the switch is up."""
        return self._client if self.state is SwitchState.UP else None

    def samples(self, seconds: float) -> tuple[Sample, Sample] | None:
        """What it had counted at two moments, the latest and one at least `seconds` before."""
        if not self._samples:
            return None
        latest, counts = self._samples[-1]
        earlier = [s for at, s in self._samples if at <= latest - seconds]
        return (earlier[-1], counts) if earlier else None

    @property
    def is_undisturbed(self) -> bool:
        """Whether nobody else can have written to the switch since it was compared with what it should hold."""
        return self._client is not None and self._client.term == self._compared_term

    async def look_again(self) -> None:
        """Compare it if another client may have written to it since; hold its lock.

        Raises:
            SwitchError: it does not answer.
        """
        if self._client is not None and not self.is_undisturbed:
            await asyncio.to_thread(self._make_right, self._client)

    def _make_right(self, client: SwitchClient) -> Differences:
        term, began = client.term, time.monotonic()
        differences = self._compare(client)
        self.compare_times.add(time.monotonic() - began)
        self._compared_term = term
        return differences

    def reconnect(self) -> None:
        """Connect anew and compare all that it holds: after a write that failed half way."""
        self._lost.set()

    async def run(self) -> None:
        """Keep the switch as it should be, until cancelled or its network is over."""
        while True:
            await self._until_it_listens()
            if self._network is not None and self._network.is_over():
                return  # what listens may be a switch of the next network that has the name
            try:
                async with self._connection() as client:
                    await self._bring_up(client)
                    await self._watch(client)
                self._note_end()
            except SwitchError as error:
                self._set(SwitchState.DOWN, str(error))
                await asyncio.sleep(_PROBE_SECONDS)
            except Exception as error:  # of ours: it may be over at the next try
                if str(error) != self._failure:
                    _log.exception("switch %s cannot be brought up", self.name)
                self._failure = str(error)
                self._set(SwitchState.DOWN, f"switch {self.name} cannot be brought up: {error}")
                await asyncio.sleep(_RETRY_SECONDS)

    @contextlib.asynccontextmanager
    async def _connection(self) -> AsyncIterator[SwitchClient]:
        loop = asyncio.get_running_loop()
        client = await asyncio.to_thread(
            SwitchClient.connect, self.address, self._device_id, name=self.name, timeout=self._timeout
        )
        self._lost = lost = asyncio.Event()

        def note() -> None:
            with contextlib.suppress(RuntimeError):  # the loop may be closed by now
                loop.call_soon_threadsafe(self._lose, lost)

        client.call_when_lost(note)
        client.call_when_demoted(self._compare_soon)
        try:
            yield client
        finally:
            self._client = None
            self._samples.clear()
            async with self.lock:  # a task that still writes through the client fails by itself
                await asyncio.to_thread(client.close)

    def _lose(self, lost: asyncio.Event) -> None:
        """It is down at once, even if a call waits for an answer that does not come."""
        lost.set()
        if self._lost is lost:
            self._note_end()

    def _note_end(self) -> None:
        self._set(SwitchState.DOWN, f"switch {self.name} ended its control stream")

    async def _bring_up(self, client: SwitchClient) -> None:
        async with self.lock:
            started = time.monotonic()
            self._set(SwitchState.RESTORING, f"switch {self.name} is being restored")
            loaded, differences = await asyncio.to_thread(self._restore, client)
            self._client = client
            if loaded:
                self.restores += 1
                self.restore_seconds = time.monotonic() - started
                self.restore_times.add(self.restore_seconds)
            seconds = time.monotonic() - started
            _log.info(
                "switch %s is up after %.3f s: %s, %s", self.name, seconds,
                "program loaded" if loaded else "program was there", differences or "everything was there",
            )  # fmt: skip
        if not self._lost.is_set():
            self._set(SwitchState.UP, "")

    def _restore(self, client: SwitchClient) -> tuple[bool, Differences]:
        self._compared_term = None
        if not client.runs(self._program):
            term = client.term
            client.push_pipeline(self._program)
            self._compared_term = term
            parts = list(self._wanted())
            for part in parts:
                write(part, client)
            self._keeper.put_back(client)
            return True, Differences(sum(len(p.entries) for p in parts), 0, sum(len(p.groups) for p in parts))
        differences = self._make_right(client)
        self._keeper.note(client, self._wanted())
        return False, differences

    async def note(self) -> None:
        """Have noted what people put on it; hold its lock.

        Raises:
            SwitchError: it does not answer.
        """
        client = self._client
        assert client is not None
        await asyncio.to_thread(lambda: self._keeper.note(client, self._wanted()))

    async def _watch(self, client: SwitchClient) -> None:
        while not self._lost.is_set():
            sampling = asyncio.create_task(asyncio.to_thread(sample, client))
            sampling.add_done_callback(_take_error)
            answered, _ = await asyncio.wait((sampling,), timeout=self._hang)
            if not answered:
                self._set(
                    SwitchState.DOWN, f"switch {self.name} ({self.address}) hangs: no answer for {self._hang:g} s"
                )
            try:
                counts = await sampling
            except SwitchError as error:
                if self._lost.is_set() or error.code != "DEADLINE_EXCEEDED":
                    raise
                self._set(SwitchState.DOWN, str(error))  # it hangs, but the connection stands
            else:
                if self._lost.is_set():
                    return
                self._samples.append((time.monotonic(), counts))
                self._set(SwitchState.UP, "")
                await self._look_for_drift(client)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(SAMPLE_SECONDS):
                    await self._lost.wait()

    def _compare_soon(self) -> None:
        self._next_compare = 0.0

    async def _look_for_drift(self, client: SwitchClient) -> None:
        """Put right what others have changed: now and then, at once after another client took the switch over, and at
        every look for as long as such a client may write."""
        began = time.monotonic()
        if began < self._next_compare and not client.rival:
            return
        async with self.lock:
            self._next_compare = began + self._compare_seconds  # before the look: a notice that comes meanwhile counts
            if not await asyncio.to_thread(client.runs, self._program):
                raise SwitchError(f"switch {self.name} runs another program than it should; {client.rival}")
            rival = client.rival
            differences = await asyncio.to_thread(self._make_right, client)
        took = time.monotonic() - began
        if self._next_compare:
            self._next_compare += _LEAST_PAUSE * took
        if differences:
            self.repairs += 1
            _log.warning("switch %s held what it should not: %s%s", self.name, differences, rival and f"; {rival}")
        others = len({entry.match["gen"] for entry in differences.foreign})
        left = f"{others} streams of another control plane are left alone" if others else ""
        self.comparisons += 1
        self.remark = "; ".join(filter(None, (client.rival, left)))

    async def _until_it_listens(self) -> None:
        address = parse(self.address)
        while not await asyncio.to_thread(address.is_listening):
            await asyncio.sleep(_PROBE_SECONDS)

    def _set(self, state: SwitchState, detail: str) -> None:
        if state is self.state and detail == self.detail:
            return
        if state is SwitchState.DOWN and self.state is not SwitchState.DOWN:
            _log.warning("%s", detail)
        self.state, self.detail = state, detail
        self._changed()
