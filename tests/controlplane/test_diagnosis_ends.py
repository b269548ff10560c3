"""Ctrl-C ends a diagnosis at once, however long it was to look: its threads are waited for, and stop to wait."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest
from test_diagnosis import topology

from catchment.controlplane.diagnosis import groups
from catchment.controlplane.diagnosis.groups import diagnose_group, examine_group
from catchment.controlplane.jobs import Allocator, JobGroup, plan_job

LONG = 20.0


@pytest.mark.parametrize(
    ("look", "diagnosis"),
    [
        ("diagnose", lambda group: diagnose_group(group, {}, interval=LONG)),
        ("examine_one", lambda group: examine_group(group, topology(), {}, interval=LONG)),
    ],
)
def test_who_waits_is_woken(look: str, diagnosis: Callable[[JobGroup], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    woken, done = [], threading.Event()

    def waits(*_: object, pause: Callable[[float], object], interval: float, **__: object) -> None:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        woken.append(pause(interval))
        done.set()

    monkeypatch.setattr(groups, look, waits)
    plan = plan_job("allreduce", topology(), name="x", workers=["w0", "w1"], slots=8, allocator=Allocator(topology()))
    with pytest.raises(KeyboardInterrupt):
        diagnosis(JobGroup("x", {"": plan}))
    assert done.wait(2 * LONG)
    assert woken == [True]  # and not because the time was over
