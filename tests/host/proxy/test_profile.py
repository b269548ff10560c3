"""The profiler over ports of a switch in memory, and its file."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from catchment.host.proxy import LinkCurve, ProxyError
from catchment.host.proxy.profile import answer, measure
from catchment.host.proxy.profile_file import read_profile, slowest, write_profile
from catchment.sim.lab.memory_switch import MemorySwitch


def test_all_clients_measure_together() -> None:
    switch, sizes = MemorySwitch(2), (64, 4096)
    found: dict[int, LinkCurve] = {}

    def client(wid: int) -> None:
        found[wid] = measure(switch.worker(wid), sizes, 3)

    threads = [threading.Thread(target=client, args=(wid,)) for wid in range(2)]
    threads.append(threading.Thread(target=answer, args=(switch.root(), sizes, 3)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [[size for size, _ in found[wid].points] for wid in range(2)] == [list(sizes)] * 2
    for wrong, rounds in (((4,), 1), ((8, 4), 1), ((4, 6), 1), ((4, 8), 0)):
        with pytest.raises(ProxyError):
            measure(switch.worker(0), wrong, rounds)


def test_a_file_gathers_the_clients_and_the_slowest_counts(tmp_path: Path) -> None:
    path = tmp_path / "profile.json"
    fast, slow = (LinkCurve.linear(1e-6, rate) for rate in (8e9, 2e9))
    write_profile(path, {"w0": {"a": fast, "b": slow}})
    write_profile(path, {"w1": {"a": slow, "b": slow}})
    found = read_profile(path)
    assert found == {"w0": {"a": fast, "b": slow}, "w1": {"a": slow, "b": slow}}
    assert slowest(found) == {"a": slow, "b": slow}
    write_profile(path, {"w2": {"a": fast}})
    with pytest.raises(ProxyError, match=r"w2 measured \['a'\], w0 \['a', 'b'\]: measure again"):
        read_profile(path)
    for text, says in (
        ("{", "profile.json:1: not JSON"),
        ('{"w0": 1}', "is no profile, which has the form"),
        ("{}", "has no link"),
        ('{"w0": {"a": [[1, 2]]}}', "two sizes"),
    ):
        path.write_text(text)
        with pytest.raises(ProxyError, match=says):
            read_profile(path)
    with pytest.raises(ProxyError, match="No such file"):
        read_profile(tmp_path / "none.json")
