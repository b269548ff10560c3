"""A switch that has died under UDP ends what waits for it; a rank that is late does not look like one."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from collective_lab import PATIENCE

from catchment.host.collectives import CollectiveError, Communicator
from catchment.host.transport.stream import Stream
from catchment.wire.generated.constants import Flag, Header, PacketType

STREAM = Stream(gen=7, workers=2, slots=16, lanes=64)
ABSENT = 0.3
CALLS = 60  # of a rank in 1.2 s: many times what a dead switch is given


class EmptySwitch:
    """A switch to which one of two ranks has come: it carries that rank's calls back and has no sums."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.address = self._socket.getsockname()
        self.carried = 0
        self.enough = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while True:
            frame, source = self._socket.recvfrom(65536)
            if not frame:
                return
            header = Header.unpack(frame)
            if header.type == PacketType.HB and header.flags & Flag.RETX:
                merged = header._replace(type=PacketType.MH, flags=Flag.RETX)
                self._socket.sendto(merged.pack(), source)
                self.carried += 1
                if self.carried >= CALLS:
                    self.enough.set()

    def die(self) -> None:
        """Answer nothing any more; the address stays bound, as a host whose switch has died leaves it."""
        if self._thread.is_alive():
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
                last.sendto(b"", self.address)
            self._thread.join(PATIENCE)

    def close(self) -> None:
        self.die()
        self._socket.close()


@pytest.fixture
def switch() -> Iterator[EmptySwitch]:
    made = EmptySwitch()
    yield made
    made.close()


def rank(switch: EmptySwitch, **options: object) -> Communicator:
    return Communicator(
        STREAM,
        rank=0,
        local=("127.0.0.1", 0),
        switch=switch.address,
        port="udp",
        **{"timeout": 10 * PATIENCE, "absent": ABSENT, "switch_name": "s7", **options},  # type: ignore[arg-type]
    )


def test_a_rank_that_is_late_is_no_dead_switch_and_a_dead_switch_is_named(switch: EmptySwitch) -> None:
    with rank(switch) as alone:
        work = alone.all_reduce(np.ones(5000, np.float32))
        assert switch.enough.wait(PATIENCE)
        assert not work.done(), work.exception()
        switch.die()
        with pytest.raises(CollectiveError) as caught:
            work.wait(PATIENCE)
    assert (caught.value.kind, caught.value.fatal) == ("unreachable", True)
    text = str(caught.value)
    assert f"the switch s7 at 127.0.0.1:{switch.address[1]} is silent" in text


def test_a_switch_that_was_never_there(switch: EmptySwitch) -> None:
    switch.die()
    with rank(switch) as alone, pytest.raises(CollectiveError, match=r"s7 at .* was never heard") as caught:
        alone.barrier().wait(PATIENCE)
    assert caught.value.kind == "unreachable"


def test_without_a_limit_the_timeout_says_so(switch: EmptySwitch) -> None:
    switch.die()
    with rank(switch, absent=None, timeout=0.5) as alone, pytest.raises(CollectiveError, match="within the timeout"):
        alone.barrier().wait(PATIENCE)


@pytest.mark.parametrize("absent", [0.0, -1.0, float("nan")])
def test_an_absence_of_no_time_is_refused(switch: EmptySwitch, absent: float) -> None:
    with pytest.raises(CollectiveError, match="absent for") as caught:
        rank(switch, absent=absent)
    assert caught.value.kind == "argument"
