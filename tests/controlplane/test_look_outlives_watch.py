"""A controller that ends while a switch hangs leaves a look at the switch under way, which fails later."""

from __future__ import annotations

import asyncio
import gc
import threading
from typing import Any, cast

import pytest

from catchment.controlplane.client import SwitchClient, SwitchError
from catchment.controlplane.controller import switches
from catchment.controlplane.controller.keeper import Keeper
from catchment.controlplane.controller.settings import Timing
from catchment.controlplane.controller.switches import SwitchAgent
from catchment.controlplane.programs.pipeline_config import PipelineConfig
from catchment.controlplane.state.desired import Differences


def test_nobody_misses_the_error_of_a_look_that_was_left(monkeypatch: pytest.MonkeyPatch) -> None:
    began, may_fail = threading.Event(), threading.Event()

    def look(_: SwitchClient) -> Any:
        began.set()
        assert may_fail.wait(60)
        raise SwitchError("the switch is gone")

    monkeypatch.setattr(switches, "sample", look)
    complaints: list[str] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context["message"]))
        agent = SwitchAgent(
            "s1", "127.0.0.1:1", 1, program=cast("PipelineConfig", None), wanted=list,
            compare=lambda _: cast("Differences", None), changed=lambda: None, keeper=cast("Keeper", None),
            timing=Timing(),
        )  # fmt: skip
        watching = asyncio.create_task(agent._watch(cast("SwitchClient", None)))
        assert await asyncio.to_thread(began.wait, 60)
        watching.cancel()
        await asyncio.wait([watching])
        (left,) = asyncio.all_tasks() - {asyncio.current_task()}
        may_fail.set()
        await asyncio.wait([left])
        del left
        gc.collect()

    asyncio.run(main())
    assert complaints == []
