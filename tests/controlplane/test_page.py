"""The examples of docs/explanation/p4runtime-client.md for one switch run as they stand."""

from __future__ import annotations

import asyncio
import re
import textwrap
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from fake_program import fake_p4info
from fake_switch import FakeSwitch, RunningFake

from catchment.checkout import ROOT
from catchment.controlplane import client as names
from catchment.controlplane.client import P4Info, SwitchClient, TableEntry
from catchment.controlplane.client.entries import to_message
from catchment.wire.generated import p4runtime_pb2

ADDRESS = "127.0.0.1:9559"
ENTRY = TableEntry("l2", {"dst": "02:00:00:00:00:01"}, "forward", {"port": 3}, idle_timeout_ns=10**9)


def example(word: str, address: str) -> str:
    """The example that contains a word, for a switch at an address."""
    page = (ROOT / "docs" / "explanation" / "p4runtime-client.md").read_text("utf-8")
    (code,) = [
        block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if f'{word}("{ADDRESS}")' in block
    ]
    return str(code).replace(ADDRESS, address)


def test_the_blocking_example(fake: RunningFake, capsys: pytest.CaptureFixture[str]) -> None:
    exec(example("SwitchClient.connect", fake.address), {**vars(names)})
    assert capsys.readouterr().out == "{'dst': '02:00:00:00:00:01'} forward {'port': 3}\n"
    with SwitchClient.connect(fake.address, timeout=60.0, read_only=True) as client:
        assert (client.read("l2"), client.groups()) == ([], {})
        default = client.read_default("l2")
    assert default is not None
    assert default.action == "flood"


class NoticesDeletes(FakeSwitch):
    """Tells that an entry is idle, and ends what it tells once something has been deleted."""

    def __init__(self) -> None:
        p4info = fake_p4info()
        self.deleted = threading.Event()
        self.idle = p4runtime_pb2.StreamMessageResponse()
        self.idle.idle_timeout_notification.table_entry.append(to_message(ENTRY, P4Info(p4info)))
        super().__init__(p4info=p4info, notices=self._tell())

    def _tell(self) -> Iterator[Any]:
        yield self.idle
        self.deleted.wait(60)
        raise ConnectionAbortedError

    def Write(self, request: Any, context: Any) -> Any:  # noqa: N802
        reply = super().Write(request, context)
        if any(update.type == p4runtime_pb2.Update.DELETE for update in request.updates):
            self.deleted.set()
        return reply


def test_the_asynchronous_example() -> None:
    switch = NoticesDeletes()
    with RunningFake(switch) as running:
        code = example("AsyncSwitchClient", running.address)
        found: dict[str, Any] = {}
        exec(f"async def use():\n{textwrap.indent(code, '    ')}", {**vars(names)}, found)
        asyncio.run(asyncio.wait_for(found["use"](), 60))
    assert switch.deleted.is_set()
    assert not switch.entities
