"""The profiler over ports of a switch in memory, and its file."""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from catchment.host.proxy import LinkCurve, ProxyError, profile_file
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


def test_clients_that_add_to_a_file_at_once_are_all_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each waits, between its read and its write, for one that reads meanwhile."""
    path, link, clients = tmp_path / "profile.json", LinkCurve.linear(1e-6, 8e9), [f"w{n}" for n in range(4)]
    write_profile(path, {"first": {"a": link}})
    read, others = profile_file.read_profile, threading.Barrier(2)

    def reading(place: Path) -> dict[str, dict[str, LinkCurve]]:
        found = read(place)
        with contextlib.suppress(threading.BrokenBarrierError):
            others.wait(0.2)
        return found

    monkeypatch.setattr(profile_file, "read_profile", reading)
    with ThreadPoolExecutor(len(clients)) as threads:
        list(threads.map(lambda client: write_profile(path, {client: {"a": link}}), clients))
    assert read(path) == {client: {"a": link} for client in ("first", *clients)}
    assert sorted(file.name for file in tmp_path.iterdir()) == ["profile.json", "profile.json.lock"]


def test_a_profile_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    for path in (tmp_path / "none" / "profile.json", Path("/proc/profile.json")):
        with pytest.raises(ProxyError, match=f"cannot add to {path}: .*: give a file that can be written"):
            write_profile(path, {"w0": {"a": LinkCurve.linear(1e-6, 8e9)}})
