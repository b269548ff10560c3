"""Proxies that keep parameters: what clients pull, snapshots while training goes on, and a group that comes back."""

from __future__ import annotations

import itertools
import json
import random
import shutil
import signal
import subprocess
import sys
import threading
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from proxy_group import LIMIT, Floats, expected_sum, group_of, run_group, step

from catchment.host.optimizer import Adam, Sgd
from catchment.host.proxy import Client, Proxy, ProxyError, ProxyGroup, TensorTable
from catchment.host.proxy.parameters import Parameters
from catchment.host.proxy.snapshots import Part, SnapshotFolder, SnapshotRecord
from catchment.sim.golden.optimizers import Moments
from catchment.sim.golden.optimizers import step as golden_step

EXPONENTS = {"first": 0, "second": -3, "third": 5}
SIZES = {"first": 1000, "second": 1, "third": 5003}
TABLE = TensorTable.of(SIZES, EXPONENTS, shard_bytes=2048)
RULES: list[tuple[dict[str, Any], Adam | Sgd]] = [
    ({"name": "adam", "lr": 0.01, "decay": 0.1}, Adam(lr=0.01, decay=0.1)),
    ({"name": "sgd", "lr": 0.1, "nesterov": True}, Sgd(lr=0.1, nesterov=True)),
]
CLIENT = """
import sys
import numpy as np
from pathlib import Path
from catchment.host.proxy import Client, ProxyGroup, TensorTable
group, number, steps = ProxyGroup.read(Path(sys.argv[1])), int(sys.argv[2]), int(sys.argv[3])
sizes = {"first": 1000, "second": 1, "third": 5003}
table = TensorTable.of(sizes, 0, shard_bytes=2048)
begin = {name: np.random.default_rng(size).normal(size=size).astype(np.float32) for name, size in sizes.items()}
found = {name: np.empty(size, np.float32) for name, size in sizes.items()}
with Client(group, number, table, parameters=begin) as client:
    for step in range(client.step, steps):
        for name, size in sizes.items():
            numbers = np.random.default_rng([number, step, size])
            client.pull(name, found[name]).wait()  # gradients are of the parameters: an error would go on
            client.push(name, (numbers.normal(size=size) / 8 + found[name] / 64).astype(np.float32))
        client.end_step()
        print(step, flush=True)
    for name, out in found.items():
        client.pull(name, out).wait()
    np.savez(sys.argv[4], **found)
"""


def began(seed: int) -> dict[str, Floats]:
    numbers = np.random.default_rng(seed)
    return {name: numbers.normal(size=size).astype(np.float32) for name, size in SIZES.items()}


def gradients(seed: int, client: int, at: int) -> dict[str, Floats]:
    numbers = np.random.default_rng([seed, client, at])
    return {n: (numbers.normal(size=size) * 0.3 * 2.0 ** EXPONENTS[n]).astype(np.float32) for n, size in SIZES.items()}


def run(
    group: ProxyGroup, seed: int, steps: int, rng: random.Random, table: TensorTable = TABLE
) -> list[tuple[int, list[dict[str, Floats]]]]:
    """What each client pulls after every step, and the step that it began with; each pushes in orders of its own."""

    def work(client: Client, number: int) -> tuple[int, list[dict[str, Floats]]]:
        own = random.Random(seeds[number])
        first = client.step
        found = []
        for at in range(first, steps):
            order = own.sample(list(SIZES), len(SIZES))
            found.append(step(client, gradients(seed, number, at), order))
        return first, found

    seeds = [rng.getrandbits(32) for _ in range(group.clients)]
    routes = [[rng.randrange(len(group.addresses)) for _ in table.shards] for _ in range(group.clients)]
    return run_group(group, table, work, routes=routes, parameters=began(seed))


@pytest.mark.parametrize(("facts", "rule"), RULES)
def test_every_client_pulls_what_the_rule_makes_of_the_sums(
    facts: dict[str, Any], rule: Adam | Sgd, rng: random.Random
) -> None:
    seed, steps, clients = rng.getrandbits(30), 4, 3
    with group_of(2, clients, groups=2, rule=facts) as group:
        found = run(group, seed, steps, rng)
    weights, moments = began(seed), {name: Moments.zeros(size) for name, size in SIZES.items()}
    for at in range(steps):
        own = [gradients(seed, client, at) for client in range(clients)]
        for name in SIZES:
            total = expected_sum([each[name] for each in own], EXPONENTS[name])
            weights[name] = golden_step(rule, weights[name], moments[name], total, rule.lr, 1.0)
            for client in range(clients):
                assert (found[client][1][at][name].view(np.int32) == weights[name].view(np.int32)).all(), (at, name)


def test_a_group_goes_on_from_its_last_snapshot_to_the_same_bits(tmp_path: Path, rng: random.Random) -> None:
    """Eleven steps in one go, and seven, whose record is of step 6; then eleven from there."""
    seed = rng.getrandbits(30)
    options = {"groups": 2, "rule": RULES[0][0], "snapshot_every": 3}
    with group_of(3, 2, snapshots=tmp_path / "whole", **options) as group:
        whole = run(group, seed, 11, rng)
    with group_of(3, 2, snapshots=tmp_path / "cut", **options) as group:
        cut = run(group, seed, 7, rng)
    record = SnapshotFolder(tmp_path / "cut").record()
    assert record is not None
    assert (record.step, record.proxies) == (6, 3)
    assert [path.name for path in sorted((tmp_path / "cut").glob("step-*"))] == ["step-6"]
    with group_of(3, 2, snapshots=tmp_path / "cut", **options) as group:
        again = run(group, seed, 11, rng)
    assert [first for first, _ in (*whole, *cut, *again)] == [0, 0, 0, 0, 6, 6]
    for client in range(2):
        for at in range(11):
            for name in SIZES:
                want = whole[client][1][at][name]
                if at < 7:
                    assert (cut[client][1][at][name] == want).all()
                if at >= 6:
                    assert (again[client][1][at - 6][name] == want).all(), (at, name)


def test_a_group_ends_when_every_proxy_has_saved_the_last_step(
    tmp_path: Path, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Proxy 1, which no client pushes to, finishes the last sum when clients and proxy 0 have left."""
    seed, last = rng.getrandbits(30), 3
    left, early = threading.Event(), threading.Event()
    close, update = Parameters.close, Parameters.update

    def closing(parameters: Any) -> None:
        close(parameters)
        if parameters._number == 1:
            early.set()
        else:
            early.wait(1.0)  # a proxy 1 that goes with its clients has the time to do so
            left.set()

    def updating(parameters: Any, shard: int, at: int, *sums: Any) -> Floats:
        if parameters._number == 1 and at == last - 1 and shard == len(TABLE.shards) - 1:
            assert left.wait(LIMIT)
        return update(parameters, shard, at, *sums)

    monkeypatch.setattr(Parameters, "close", closing)
    monkeypatch.setattr(Parameters, "update", updating)

    def work(client: Client, number: int) -> None:
        for at in range(last):
            step(client, gradients(seed, number, at), list(SIZES))

    options = {"rule": RULES[0][0], "snapshots": tmp_path, "snapshot_every": last}
    with group_of(2, 2, **options) as group:
        run_group(group, TABLE, work, routes=[[0] * len(TABLE.shards)] * 2, parameters=began(seed))
    record = SnapshotFolder(tmp_path).record()
    assert record is not None
    assert record.step == last


def test_a_last_snapshot_that_cannot_be_saved_is_an_error_at_its_proxy(
    tmp_path: Path, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed = rng.getrandbits(30)
    ending = threading.Event()
    save, close = SnapshotFolder.save, Parameters.close

    def saving(folder: SnapshotFolder, proxy: int, *what: Any) -> None:
        if proxy == 1:
            assert ending.wait(LIMIT)
            raise ProxyError("the disk of proxy 1 is full")
        save(folder, proxy, *what)

    def closing(parameters: Any) -> None:
        if parameters._number == 1:
            ending.set()
        close(parameters)

    monkeypatch.setattr(SnapshotFolder, "save", saving)
    monkeypatch.setattr(Parameters, "close", closing)
    with (
        group_of(2, 1, rule=RULES[1][0], snapshots=tmp_path, snapshot_every=2) as group,
        pytest.raises(ProxyError, match="the disk of proxy 1 is full"),
    ):
        run(group, seed, 2, rng)


def test_a_shard_that_is_not_finite_stays_as_it_is(rng: random.Random) -> None:
    seed = rng.getrandbits(30)
    table = TensorTable.of({"a": 1000}, 0, shard_bytes=2048)
    begin = {"a": np.random.default_rng(seed).normal(size=1000).astype(np.float32)}

    def work(client: Client, number: int) -> Floats:
        own = np.ones(1000, np.float32)
        if number == 1:
            own[100] = np.nan
        return step(client, {"a": own}, ["a"])["a"]

    with group_of(2, 2, rule=RULES[1][0]) as group:
        found = run_group(group, table, work, parameters=begin)
    shard = table.shards[0]
    for each in found:
        assert (each[: shard.stop] == begin["a"][: shard.stop]).all()
        assert (each[shard.stop :] != begin["a"][shard.stop :]).all()


def test_what_a_group_cannot_begin_with_is_refused(tmp_path: Path, rng: random.Random) -> None:
    seed = rng.getrandbits(30)
    options = {"rule": RULES[1][0], "snapshot_every": 2, "timeout": 30.0}
    with group_of(2, 1, rule=RULES[1][0]) as group, pytest.raises(ProxyError, match="client 0 has to bring them"):
        run_group(group, TABLE, lambda client, _: client.step)
    folder = tmp_path / "snapshots"
    with group_of(2, 1, snapshots=folder, **options) as group:
        run(group, seed, 3, rng)
    with (
        group_of(3, 1, snapshots=folder, **options) as group,
        pytest.raises(ProxyError, match="has step 2 of 2 proxies; this group has 3"),
    ):
        run(group, seed, 3, rng)
    other = TensorTable.of(SIZES, 1, shard_bytes=2048)
    with (
        group_of(2, 1, snapshots=folder, **options) as group,
        pytest.raises(ProxyError, match="of another table or rule"),
    ):
        run(group, seed, 3, rng, other)
    for wrong in (
        {"snapshots": folder},
        {"snapshot_every": 2},
        {"snapshots": folder, "snapshot_every": 1, "rule": None},
    ):
        with pytest.raises(ProxyError, match="snapshots in"):
            ProxyGroup(("a/0",), 1, b"long enough to use", **{"rule": {"name": "sgd"}, **wrong})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"name": "adagrad"}, "a rule named 'adagrad': adam or sgd"),
        ({"lr": 1}, "a rule named None: adam or sgd"),
        ({"name": ["adam"]}, r"a rule named \['adam'\]: adam or sgd"),
        ("adam", "a rule 'adam': give an object"),
        ({"name": "adam", "lr": "fast"}, "rule adam: lr is 'fast': give a number"),
        ({"name": "adam", "lr": float("inf")}, "rule adam: lr is inf: give a number"),
        ({"name": "adam", "lr": 10**400}, "rule adam: lr is 1000.*: give a number"),
    ],
)
def test_a_rule_that_is_none_is_refused_with_the_group(tmp_path: Path, rule: Any, said: str) -> None:
    path = tmp_path / "group.json"
    path.write_text(json.dumps({"addresses": ["a/0"], "clients": 1, "secret": "known to this test", "rule": rule}))
    with pytest.raises(ProxyError, match=said):
        ProxyGroup.read(path)


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"name": "sgd", "beta1": 0.5}, "rule .*'beta1'"),
        ({"name": "adam", "lr": -1}, r"rule .* need lr >= 0"),
        ({"name": "sgd", "nesterov": True, "momentum": 0}, "Nesterov's direction needs a momentum"),
    ],
)
def test_constants_that_a_rule_has_not_are_refused_before_anybody_comes(rule: dict[str, Any], said: str) -> None:
    with group_of(2, 1, rule=rule) as group:
        with pytest.raises(ProxyError, match=said):
            Proxy(group, 0)
        assert not Path(group.addresses[0]).exists(), "nobody is led to think that it listens"


def _sealed(**facts: Any) -> str:
    """A record with a checksum that is right."""
    body = json.dumps({"step": 2, "proxies": 1, "plan": 5, "crc32": zlib.crc32(b"abcd"), **facts})
    return json.dumps({"crc32": zlib.crc32(body.encode()), "record": body})


@pytest.mark.parametrize(
    "wrong", [{"step": "2"}, {"step": -2}, {"step": 2.0}, {"proxies": None}, {"plan": []}, {"crc32": True}]
)
def test_a_record_of_wrong_types_is_damaged_though_its_checksum_is_right(tmp_path: Path, wrong: dict[str, Any]) -> None:
    folder = SnapshotFolder(tmp_path)
    folder.save(0, Part(2, 5, (4,), zlib.crc32(b"abcd")), [memoryview(b"abcd")], 1)
    (tmp_path / "record.json").write_text(_sealed())
    assert folder.record() == SnapshotRecord(2, 1, 5, zlib.crc32(b"abcd"))
    (tmp_path / "record.json").write_text(_sealed(**wrong))
    with pytest.raises(ProxyError, match="the record is damaged: restore it"):
        folder.record()
    with pytest.raises(ProxyError, match="the record is damaged: restore it"):
        folder.load(0, 1, 5)


@pytest.mark.parametrize(
    "wrong", [{"plan": 6}, {"step": "2"}, *({"sizes": sizes} for sizes in (["4"], [10**400], [-4], [3], "4", 4))]
)
def test_a_part_of_wrong_types_is_damaged_though_its_checksum_is_right(tmp_path: Path, wrong: dict[str, Any]) -> None:
    folder, crc = SnapshotFolder(tmp_path), zlib.crc32(b"abcd")
    folder.save(0, Part(2, 5, (4,), crc), [memoryview(b"abcd")], 1)
    found = folder.load(0, 1, 5)
    assert found is not None
    assert [bytes(value) for value in found[1]] == [b"abcd"]
    head = json.dumps({"step": 2, "plan": 5, "sizes": [4], "crc32": crc, **wrong})
    (tmp_path / "step-2" / "proxy-0").write_bytes(head.encode() + b"\nabcd")
    with pytest.raises(ProxyError, match="proxy-0 is damaged: put a copy"):
        folder.load(0, 1, 5)


def test_a_snapshot_of_other_sizes_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = Part(2, 5, (4,), 0), [np.zeros(4, np.uint8)]
    monkeypatch.setattr(SnapshotFolder, "load", lambda *_: loaded)
    with (
        group_of(1, 1, rule=RULES[0][0], snapshots=tmp_path, snapshot_every=1) as group,
        pytest.raises(ProxyError, match="has values of other sizes than this group's: give it another folder"),
    ):
        Parameters(group, 0, TABLE, lambda _: None)


def test_a_snapshot_of_mixed_steps_is_refused(tmp_path: Path, rng: random.Random) -> None:
    seed, folder = rng.getrandbits(30), tmp_path / "snapshots"
    options = {"rule": RULES[0][0], "snapshots": folder, "snapshot_every": 2}
    with group_of(2, 1, **options) as group:
        run(group, seed, 2, rng)
    shutil.copytree(folder, tmp_path / "earlier")
    with group_of(2, 1, **options) as group:
        run(group, seed, 4, rng)
    part = folder / "step-4" / "proxy-1"
    good = part.read_bytes()
    part.write_bytes((tmp_path / "earlier" / "step-2" / "proxy-1").read_bytes())
    with (
        group_of(2, 1, **options) as group,
        pytest.raises(ProxyError, match=r"proxy-1 is of step 2, .* steps do not mix"),
    ):
        run(group, seed, 5, rng)
    part.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    with group_of(2, 1, **options) as group, pytest.raises(ProxyError, match="proxy-1 is damaged: put a copy"):
        run(group, seed, 5, rng)
    part.unlink()
    with group_of(2, 1, **options) as group, pytest.raises(ProxyError, match="the part of the record's step is gone"):
        run(group, seed, 5, rng)
    part.write_bytes((folder / "step-4" / "proxy-0").read_bytes())
    with group_of(2, 1, **options) as group:
        assert run(group, seed, 5, rng)[0][0] == 4
    record = folder / "record.json"
    record.write_text(record.read_text().replace("4", "6"))
    with group_of(2, 1, **options) as group, pytest.raises(ProxyError, match="the record is damaged"):
        run(group, seed, 5, rng)


def test_proxies_whose_values_differ_get_no_record(tmp_path: Path) -> None:
    folder = SnapshotFolder(tmp_path)
    folder.save(1, Part(2, 5, (4,), zlib.crc32(b"abcd")), [memoryview(b"abcd")], 2)
    with pytest.raises(ProxyError, match="proxies 1 and 0 have different values of step 2: no record is written"):
        folder.save(0, Part(2, 5, (4,), zlib.crc32(b"abce")), [memoryview(b"abce")], 2)
    assert folder.record() is None
    assert folder.load(1, 2, 5) is None  # what was not agreed on will run again
    assert not (tmp_path / "step-2" / "proxy-1").exists()


def test_proxies_at_different_steps_are_refused(tmp_path: Path, rng: random.Random) -> None:
    """A proxy that does not see the others' folder; nothing is changed in it."""
    seed = rng.getrandbits(30)
    options = {"rule": RULES[0][0], "snapshots": tmp_path / "seen", "snapshot_every": 2}
    with group_of(2, 1, **options) as group:
        run(group, seed, 2, rng)

    def told(number: int, group: ProxyGroup) -> ProxyGroup:
        facts = {name: getattr(group, name) for name in ("addresses", "clients", "secret", "timeout")}
        return ProxyGroup(**{**facts, **options, "snapshots": tmp_path / ("seen" if number else "empty")})

    with (
        group_of(2, 1) as group,
        pytest.raises(ProxyError, match=r"proxy 0 .* step 0, proxy 1 .* step 2: steps do not"),
    ):
        run_group(group, TABLE, lambda client, _: client.step, told=told, parameters=began(seed))


def _start(path: Path, group: ProxyGroup, steps: int, out: Path) -> tuple[list[Any], list[Any]]:
    def start(*words: str) -> subprocess.Popen[str]:
        return subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    proxies = [start("-m", "catchment.cli", "proxy", "run", str(path), str(n)) for n in range(len(group.addresses))]
    clients = [start("-c", CLIENT, str(path), str(n), str(steps), str(out / f"{n}.npz")) for n in range(group.clients)]
    return proxies, clients


def _ended(processes: Sequence[Any]) -> list[tuple[int, str]]:
    return [(process.returncode, errors) for process in processes for _, errors in [process.communicate(timeout=LIMIT)]]


@pytest.mark.slow
def test_killed_at_any_point_the_training_goes_on_with_the_same_bits(tmp_path: Path, rng: random.Random) -> None:
    """A proxy is killed again and again, some random steps later; all are started again, in the same folder."""
    steps, weights = 60, []
    for name, kills in (("whole", 0), ("killed", 3)):
        for attempt in itertools.count():
            with group_of(2, 2, timeout=20.0) as group:
                facts = {"addresses": group.addresses, "clients": 2, "timeout": 20.0, "snapshots": name}
                path = tmp_path / f"{name}.json"
                rule = {"name": "adam", "lr": 0.01}
                path.write_text(json.dumps(facts | {"rule": rule, "snapshot_every": 2, "secret": "known to this test"}))
                proxies, clients = _start(path, group, steps, tmp_path)
                if attempt < kills:
                    for _ in range(rng.randrange(4, 16)):
                        assert clients[0].stdout.readline()
                    proxies[rng.randrange(2)].send_signal(signal.SIGKILL)
                    ended = _ended([*clients, *proxies])
                    assert all(code for code, _ in ended), ended
                    continue
                ended = _ended([*clients, *proxies])
                assert not any(code for code, _ in ended), ended
                break
        weights.append([dict(np.load(tmp_path / f"{number}.npz")) for number in range(2)])
        record = SnapshotFolder(tmp_path / name).record()
        assert record is not None
        assert record.step == steps
    for tensor in SIZES:
        for each in (*weights[0], *weights[1]):
            assert (each[tensor] == weights[0][0][tensor]).all(), tensor
