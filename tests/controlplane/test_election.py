"""The newest client is the primary, wherever the clocks stand and whatever id was taken before."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from fake_program import fake_p4info
from fake_switch import FakeSwitch, RunningFake
from google.protobuf import text_format
from running_controller import until

from catchment.controlplane.client import AsyncSwitchClient, P4Info, SwitchClient, SwitchError, TableEntry
from catchment.controlplane.client.election import HIGHEST, Candidate, above, first_bid
from catchment.controlplane.client.exchanges import Call, Exchanges, Pause, TakeOver
from catchment.controlplane.programs.pipeline_config import PipelineConfig

PATIENCE = 60.0
Write = Callable[[str, int], None]


def entry(number: int) -> TableEntry:
    return TableEntry("l2", {"dst": f"02:00:00:00:00:{number:02x}"}, "forward", {"port": 1})


def write_blocking(address: str, number: int) -> None:
    with SwitchClient.connect(address, name="s1", timeout=PATIENCE) as client:
        client.insert(entry(number))


def write_from_asyncio(address: str, number: int) -> None:
    async def use() -> None:
        async with AsyncSwitchClient(address, name="s1", timeout=PATIENCE) as client:
            await client.write(+entry(number))

    asyncio.run(use())


@pytest.fixture(params=[write_blocking, write_from_asyncio], ids=["blocking", "asyncio"])
def write(request: pytest.FixtureRequest) -> Write:
    chosen: Write = request.param
    return chosen


def test_ids_are_counted_over_both_halves() -> None:
    assert above((0, 0)) == (0, 1)
    assert above((1, (1 << 64) - 1)) == (2, 0)
    assert above(HIGHEST) == HIGHEST
    assert first_bid() > (1, 0), "p4runtime-shell's default"


def test_a_clock_that_was_set_back_locks_nobody_out(
    fake: RunningFake, monkeypatch: pytest.MonkeyPatch, write: Write
) -> None:
    write(fake.address, 1)
    now = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: now - 3600 * 10**9)
    before = fake.switch.primary
    write(fake.address, 2)
    assert fake.switch.primary > before
    with SwitchClient.connect(fake.address, timeout=PATIENCE) as old:
        write(fake.address, 3)
        old.insert(entry(4))  # takes the switch back, with the clock still wrong
    assert len(fake.switch.entities) == 4


class Contested(FakeSwitch):
    """A switch that another client takes over just before each of so many writes reaches it."""

    rivals = 0

    def Write(self, request: Any, context: Any) -> Any:  # noqa: N802
        if self.rivals:
            self.rivals -= 1
            self.primary = above(self.primary)
        return super().Write(request, context)


def test_who_loses_the_switch_again_and_again_still_writes(write: Write) -> None:
    """Two controllers that write at the same time take the switch from each other before either has written."""
    contested = Contested(p4info=fake_p4info())
    contested.rivals = 8
    with RunningFake(contested) as fake:
        write(fake.address, 1)
    assert (contested.rivals, len(contested.entities)) == (0, 1)


def test_who_loses_the_switch_again_leaves_it_to_the_other_for_a_random_while() -> None:
    class Denied(grpc.RpcError):
        def code(self) -> grpc.StatusCode:
            return grpc.StatusCode.PERMISSION_DENIED

        def details(self) -> str:
            return "not primary"

        def trailing_metadata(self) -> tuple[()]:
            return ()

    pauses: list[list[float]] = []
    for _ in range(2):
        exchange = Exchanges("s1", Candidate(1), info=P4Info(fake_p4info())).write([+entry(1)])
        step, steps = next(exchange), []
        with contextlib.suppress(SwitchError):
            while True:
                steps.append(step)
                step = exchange.throw(Denied()) if isinstance(step, Call) else exchange.send(None)
        assert [type(one) for one in steps[:5]] == [Call, TakeOver, Call, Pause, TakeOver], "at once the first time"
        pauses.append([one.seconds for one in steps if isinstance(one, Pause)])
    assert len(pauses[0]) == len([one for one in steps if isinstance(one, TakeOver)]) - 1
    assert all(0 <= pause <= 0.25 for pause in pauses[0] + pauses[1])
    assert pauses[0] != pauses[1]
    assert max(pauses[0]) > 0.01, "longer and longer"


def test_an_id_far_above_the_clock_is_passed(fake: RunningFake, write: Write) -> None:
    fake.switch.primary = (1 << 40, 17)
    write(fake.address, 1)
    assert (1 << 40, 17) < fake.switch.primary < (1 << 40, 1 << 22)


def test_the_highest_id_of_all_is_said_and_taken_when_its_holder_leaves(fake: RunningFake, write: Write) -> None:
    with SwitchClient.connect(fake.address, name="s1", timeout=PATIENCE) as client:
        client._exchanges.candidate.election_id = HIGHEST
        client._session._become_primary(client._exchanges.candidate.bid)
        with pytest.raises(SwitchError, match=r"s1.*2\^128-1.*End that client.*restart the switch") as caught:
            write(fake.address, 1)
        assert caught.value.code == "PERMISSION_DENIED"
    until(lambda: fake.switch.holder is None, "the switch has seen its primary leave")
    write(fake.address, 1)
    assert fake.switch.primary == HIGHEST
    until(lambda: fake.switch.holder is None, "the switch has seen its primary leave")
    write(fake.address, 2)  # the next one gets it, too
    assert len(fake.switch.entities) == 2


def test_a_client_is_told_that_another_has_taken_its_switch(fake: RunningFake) -> None:
    demoted = threading.Event()
    with SwitchClient.connect(fake.address, name="s1", timeout=PATIENCE) as client:
        client.call_when_demoted(demoted.set)
        assert client.rival == ""
        with SwitchClient.connect(fake.address, name="s1", timeout=PATIENCE):
            assert demoted.wait(PATIENCE)
            assert "another client, with election id" in client.rival
        client.insert(entry(1))
        assert client.rival == ""


def test_a_program_is_loaded_although_another_has_taken_the_switch(fake: RunningFake, tmp_path: Path) -> None:
    info, config = tmp_path / "p.p4info.txt", tmp_path / "p.bin"
    info.write_text(text_format.MessageToString(fake_p4info()))
    config.write_bytes(b"code")
    with SwitchClient.connect(fake.address, name="s1", timeout=PATIENCE) as client:
        with SwitchClient.connect(fake.address, name="s1", timeout=PATIENCE):
            client.push_pipeline(PipelineConfig(info, config))
        assert fake.switch.config == b"code"
