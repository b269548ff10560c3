"""Scapy players against the golden switches, each player a thread with a port of its own."""

from __future__ import annotations

import errno
import itertools
import json
import os
import queue
import random
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from scapy.packet import Packet

from catchment.sim.golden import tags
from catchment.sim.golden.slot_model import SlotModel
from catchment.sim.golden.switch_core import SwitchCore
from catchment.sim.golden.switch_frames import packet_type
from catchment.sim.golden.switch_model import SwitchModel
from catchment.sim.golden.switch_tables import Binding, Receiver, Root, TagKey, Worker
from catchment.sim.lab.traffic import play as module
from catchment.sim.lab.traffic.attack_kind import AttackKind
from catchment.sim.lab.traffic.frames import Sender
from catchment.sim.lab.traffic.kinds import attacks
from catchment.sim.lab.traffic.pace import Frames, Pace, PacedPort, PaceError, parse_skew
from catchment.sim.lab.traffic.play import play
from catchment.sim.lab.traffic.raw_port import RawPort
from catchment.sim.lab.traffic.rounds import RoundWorker, stream_of
from catchment.sim.lab.traffic.tagged_port import TaggedPort, keys_of
from catchment.sim.lab.traffic.values import fault, value
from catchment.wire.generated.constants import UDP_PORT, DropReason, Mode, PacketType

GEN, SLOTS, LANES, WORKERS = 7, 4, 8, 3
SWITCH_IP, SWITCH_MAC = 0x0A0000FE, 0x02000000FE01
ROOT_PORT = WORKERS


class ModelSwitch:
    """A golden switch between threads: what comes out of a port waits in its queue."""

    def __init__(self, model: SwitchCore, mode: Mode) -> None:
        self.model = model
        self._lock = threading.Lock()
        self.keys: dict[int, bytes] = {}
        self.queues: list[queue.Queue[bytes]] = [queue.Queue() for _ in range(WORKERS + 1)]
        tables = model.tables
        tables.own_addresses[SWITCH_IP] = SWITCH_MAC
        tables.groups[1] = tuple(range(WORKERS))
        full = (1 << WORKERS) - 1
        for wid in range(WORKERS):
            tables.jobs[GEN, wid] = Worker(
                mode, wid, 1 << wid, 8, SLOTS - 1, full, 1, 1, up_port=ROOT_PORT, src_ip=0x0A000001 + wid
            )
        if mode in (Mode.REDUCE, Mode.BCAST):
            tables.jobs[GEN, ROOT_PORT] = Root(mode, 1, 1, 0x0A000001 + ROOT_PORT)
        for port in range(WORKERS + 1):
            tables.receivers[GEN, port] = Receiver(
                0x020000000001 + port, 0x0A000001 + port, UDP_PORT, SWITCH_MAC, SWITCH_IP
            )

    def key(self, gen: int, key: bytes) -> None:
        """Have the frames of a generation carry tags."""
        self.keys[gen] = key
        for (known, port), row in self.model.tables.jobs.items():
            if known == gen:
                self.model.tables.tags[gen, port] = TagKey(key, row.wid if isinstance(row, Worker) else 0)

    def inject(self, port: int, frame: bytes) -> None:
        with self._lock:
            for out, data in self.model.inject(port, frame):
                self.queues[out].put(data)


class ModelPort(RawPort):
    """A port of `ModelSwitch`."""

    def __init__(self, switch: ModelSwitch, number: int) -> None:
        self.mac = f"02:00:00:00:00:{number + 1:02x}"
        self._switch, self._number = switch, number

    def send(self, frame: Packet | bytes) -> None:
        self._switch.inject(self._number, bytes(frame))

    def receive(self, seconds: float) -> bytes | None:
        try:
            return self._switch.queues[self._number].get(timeout=seconds)
        except queue.Empty:
            return None

    def __exit__(self, *_: object) -> None:
        pass


def description(wid: int) -> dict[str, Any]:
    stream = {"gen": GEN, "workers": WORKERS, "slots": SLOTS, "base_seq": 0, "lanes": LANES}
    return {"wid": wid, "local": [f"10.0.0.{wid + 1}", UDP_PORT], "switch": ["10.0.0.254", UDP_PORT],
            "gradients": stream}  # fmt: skip


def ends(switch: ModelSwitch, number: int, pace: Pace) -> tuple[PacedPort, Sender]:
    port = PacedPort(TaggedPort(ModelPort(switch, number), switch.keys), pace)
    return port, Sender.of(description(number), port.mac, "02:00:00:00:fe:01")


def slot_switch() -> ModelSwitch:
    return ModelSwitch(SlotModel(LANES, 64), Mode.ALLREDUCE)


def play_rounds(switch: ModelSwitch, paces: list[Pace], rounds: int, patience: float = 240.0) -> list[Any]:
    def play(wid: int) -> Any:
        port, sender = ends(switch, wid, paces[wid])
        return RoundWorker(port, sender, description(wid)).play(rounds, patience), port.frames

    with ThreadPoolExecutor(WORKERS) as pool:
        return list(pool.map(play, range(len(paces))))


def test_workers_of_the_slots_get_every_sum(seed: int) -> None:
    switch = slot_switch()
    rounds = 20
    for count, frames in play_rounds(switch, [Pace(seed=seed + wid) for wid in range(WORKERS)], rounds):
        assert (count.started, count.right, count.wrong, count.confirmed) == (rounds,) * 2 + (0, rounds)
        assert frames.sent >= 2 * rounds
        assert (frames.unsent, frames.ignored) == (0, 0)


def test_slots_under_loss_with_a_straggler(seed: int) -> None:
    paces = [Pace(loss=0.15, seed=seed + wid, skew=(0.0, 0.01) if wid == 1 else (0.0, 0.0)) for wid in range(WORKERS)]
    results = play_rounds(slot_switch(), paces, 12)
    assert all((count.right, count.wrong, count.confirmed) == (12, 0, 12) for count, _ in results)
    assert sum(count.resent for count, _ in results) > 0
    assert sum(frames.unsent + frames.ignored for _, frames in results) > 0


def test_a_switch_that_loses_a_sum_after_one_worker_has_it() -> None:
    switch = slot_switch()
    inject = switch.model.inject

    def restart_once(port: int, frame: bytes) -> list[tuple[int, bytes]]:
        out = inject(port, frame)
        if len(out) < WORKERS or packet_type(out[0][1]) != PacketType.FA:
            return out
        switch.model.inject = inject  # type: ignore[method-assign]
        switch.model.restart()
        return [(number, data) for number, data in out if number == 0]

    switch.model.inject = restart_once  # type: ignore[method-assign]
    results = play_rounds(switch, [Pace()] * WORKERS, 6)
    assert all((count.right, count.wrong, count.confirmed) == (6, 0, 6) for count, _ in results)
    assert sum(count.resent for count, _ in results) > 0


def test_a_wrong_sum_of_the_slots_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    switch = slot_switch()
    send = ModelPort.send

    def spoil(self: ModelPort, frame: Packet | bytes) -> None:
        data = bytearray(bytes(frame))
        if len(data) > 64 and self.mac.endswith("02"):
            data[-1] ^= 1
        send(self, bytes(data))

    monkeypatch.setattr(ModelPort, "send", spoil)
    for count, _ in play_rounds(switch, [Pace()] * WORKERS, 4):
        assert (count.right, count.wrong) == (0, 4)
        assert "lane 7" in count.first_fault


def test_a_missing_worker_is_a_timeout_that_names_the_rounds() -> None:
    with pytest.raises(TimeoutError, match=r"worker 0: nothing new for 0.3 s; rounds that wait: 0 \(no FA\)"):
        play_rounds(slot_switch(), [Pace(), Pace()], 8, patience=0.3)


def test_time_ends_a_run_that_waits() -> None:
    for count, _ in play_rounds(slot_switch(), [Pace(seconds=1.5)] * 2, 8):
        assert (count.started, count.right) == (SLOTS, 0)


def play_all(
    switch: ModelSwitch, paces: list[Pace], described: Callable[[int], dict[str, Any]], **how: Any
) -> list[Any]:
    """Every member of a job, the root last if there is one."""

    def player(number: int) -> Any:
        port, sender = ends(switch, number, paces[number])
        role = "root" if number == ROOT_PORT else "worker"
        return play(role, port, sender, described(number), **how)

    with ThreadPoolExecutor(len(paces)) as pool:
        return list(pool.map(player, range(len(paces))))


@pytest.mark.parametrize("loss", [0.0, 0.1])
def test_worker_and_root_of_a_luwu_job(seed: int, loss: float) -> None:
    switch = ModelSwitch(SwitchModel(LANES, 64), Mode.REDUCE)
    paces = [Pace(loss=loss, seed=seed + number) for number in range(WORKERS + 1)]
    *workers, root = play_all(switch, paces, description, count=20, patience=240.0)
    assert all((worker["started"], worker["acknowledged"]) == (20, 20) for worker in workers)
    assert (root["right"], root["wrong"], root["first_fault"]) == (20, 0, None)


def sums(wid: int) -> dict[str, Any]:
    """What an all-reduce job tells a worker."""
    described = description(wid)
    return {"sums": described.pop("gradients"), "kind": "allreduce", **described}


@pytest.mark.parametrize("loss", [0.0, 0.1])
def test_workers_of_an_all_reduce_get_every_sum(seed: int, loss: float) -> None:
    switch = ModelSwitch(SwitchModel(LANES, 64), Mode.ALLREDUCE)
    skews = [(0.0, 0.0), (0.0, 0.01), (0.0, 0.0)]
    paces = [Pace(loss=loss, seed=seed + wid, skew=skew) for wid, skew in enumerate(skews)]
    for worker in play_all(switch, paces, sums, count=20, patience=240.0):
        assert (worker["started"], worker["acknowledged"]) == (20, 20)
        assert (worker["right"], worker["wrong"], worker["first_fault"]) == (20, 0, None)


def layers(number: int) -> dict[str, Any]:
    """What a LuWu job tells a member about its parameters."""
    described = description(number)
    stream = {**described["gradients"], "param_bytes": 333}
    return {**described, "gradients": {**stream, "gen": GEN + 1}, "parameters": stream}


@pytest.mark.parametrize("loss", [0.0, 0.1])
def test_parameters_of_a_root_reach_every_worker(seed: int, loss: float) -> None:
    switch = ModelSwitch(SwitchModel(LANES, 64), Mode.BCAST)
    paces = [Pace(loss=loss, seed=seed + number) for number in range(WORKERS + 1)]
    *workers, root = play_all(switch, paces, layers, count=20, patience=240.0, stream="parameters")
    assert (root["started"], root["acknowledged"]) == (20, 20)
    assert all((worker["right"], worker["wrong"], worker["first_fault"]) == (20, 0, None) for worker in workers)


def test_players_of_a_job_with_tags_meet_under_attack(rng: random.Random) -> None:
    """Who has no key says what each member would say next; every frame is counted, and every sum is right."""
    switch = ModelSwitch(SwitchModel(LANES, 64, tags=True), Mode.REDUCE)
    switch.key(GEN, rng.randbytes(16))
    keyed = {**description(1), "gradients": {**description(1)["gradients"], "key": switch.keys[GEN].hex()}}
    assert keys_of(keyed) == switch.keys and keys_of(description(1)) == {}
    port, sender = ModelPort(switch, 1), ends(switch, 1, Pace())[1]
    for attack in itertools.islice(attacks(AttackKind.KEYLESS, sender, keyed, rng), 40):
        port.send(attack.frame)
    assert switch.model.drops == {DropReason.BAD_TAG: 40}
    for number in range(WORKERS + 1):
        assert switch.queues[number].empty()
    *workers, root = play_all(switch, [Pace()] * (WORKERS + 1), description, count=20, patience=60.0)
    assert all((worker["started"], worker["acknowledged"]) == (20, 20) for worker in workers)
    assert (root["right"], root["wrong"]) == (20, 0)
    assert switch.model.drops[DropReason.BAD_TAG] == 40


def test_players_of_slots_with_tags_meet_under_attack(rng: random.Random) -> None:
    """Forged vectors and acknowledgements of a worker's next rounds count nowhere; the rounds' sums are right."""
    switch = ModelSwitch(SlotModel(LANES, 64, tags=True), Mode.ALLREDUCE)
    switch.key(GEN, rng.randbytes(16))
    keyed = {**description(1), "kind": "slots"}
    keyed["sums"] = {**stream_of(keyed), "key": switch.keys[GEN].hex()}
    port, sender = ModelPort(switch, 1), ends(switch, 1, Pace())[1]
    for attack in itertools.islice(attacks(AttackKind.KEYLESS, sender, keyed, rng), 40):
        port.send(attack.frame)
    assert switch.model.drops == {DropReason.BAD_TAG: 40}
    for count, _ in play_rounds(switch, [Pace()] * WORKERS, 20):
        assert (count.started, count.right, count.wrong, count.confirmed) == (20, 20, 0, 20)
    assert switch.model.drops[DropReason.BAD_TAG] == 40


def test_a_player_does_not_see_what_has_no_right_tag(rng: random.Random) -> None:
    switch = ModelSwitch(SwitchModel(LANES, 64, tags=True), Mode.REDUCE)
    switch.key(GEN, rng.randbytes(16))
    port, sender = TaggedPort(ModelPort(switch, 0), switch.keys), ends(switch, 0, Pace())[1]
    beat = bytes(sender.heartbeat(1, 2, gen=GEN))
    right = tags.signed_frame(beat, switch.keys[GEN])
    other = bytes(sender.heartbeat(1, 2, gen=GEN + 1))
    for frame in (beat, tags.signed_frame(beat, bytes(16)), right[:-1] + bytes([right[-1] ^ 1]), right, other, b"x"):
        switch.queues[0].put(frame)
    assert [port.receive(5.0) for _ in range(3)] == [beat, other, b"x"]
    assert port.forged == 3


def test_a_job_without_tags_has_no_keyless_attacker(rng: random.Random) -> None:
    _, sender = ends(slot_switch(), 0, Pace())
    with pytest.raises(ValueError, match="the job has no tags"):
        next(attacks(AttackKind.KEYLESS, sender, description(0), rng))


def test_spoiled_parameters_and_sums_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def spoil(self: ModelPort, frame: Packet | bytes) -> None:
        spoiled = bytearray(bytes(frame))
        if self._number == 0 and packet_type(spoiled) == PacketType.PA:
            spoiled[-1] ^= 1
        if self._number == ROOT_PORT and packet_type(spoiled) == PacketType.PARAM:
            spoiled[-2] ^= 1
        self._switch.inject(self._number, bytes(spoiled))

    monkeypatch.setattr(ModelPort, "send", spoil)
    summed = ModelSwitch(SwitchModel(LANES, 64), Mode.ALLREDUCE)
    for worker in play_all(summed, [Pace()] * WORKERS, sums, count=3, patience=240.0):
        assert (worker["right"], worker["wrong"]) == (0, 3)
        assert "sum 0, lane 7" in worker["first_fault"]
    copied = ModelSwitch(SwitchModel(LANES, 64), Mode.BCAST)
    results = play_all(copied, [Pace()] * (WORKERS + 1), layers, count=3, patience=240.0, stream="parameters")
    for worker in results[:WORKERS]:
        assert (worker["right"], worker["wrong"]) == (0, 3)
        assert "parameters 0, byte 331" in worker["first_fault"]


@pytest.mark.parametrize(
    ("mode", "described", "says"),
    [
        (Mode.ALLREDUCE, sums, "worker 0: nothing acknowledged|worker 0: sum 0 does not come"),
        (Mode.BCAST, layers, "worker 0: parameters 0 does not come"),
    ],
)
def test_a_member_alone_gives_up_with_a_name(mode: Mode, described: Callable[[int], Any], says: str) -> None:
    switch = ModelSwitch(SwitchModel(LANES, 64), mode)
    stream = "parameters" if mode == Mode.BCAST else "gradients"
    with pytest.raises(TimeoutError, match=says):
        play_all(switch, [Pace()], described, count=3, patience=0.3, stream=stream)


class Nowhere(RawPort):
    """Takes frames and gives as many as it is asked for."""

    def __init__(self) -> None:
        self.mac, self.taken = "02:00:00:00:00:01", 0

    def send(self, frame: Packet | bytes) -> None:
        self.taken += 1

    def receive(self, seconds: float) -> bytes | None:
        return b"x"


def test_loss_goes_both_ways_and_the_seed_repeats_it(seed: int) -> None:
    def run() -> tuple[int, Frames]:
        nowhere = Nowhere()
        port = PacedPort(nowhere, Pace(loss=0.25, seed=seed))
        for _ in range(2000):
            port.send(b"x")
            port.receive(1.0)
        return nowhere.taken, port.frames

    taken, frames = run()
    assert run() == (taken, frames)
    assert taken == frames.sent
    assert frames.sent + frames.unsent == frames.received == 2000
    assert 350 < frames.unsent < 650
    assert 450 < frames.ignored < 900


def test_a_rate_spreads_frames_over_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    monkeypatch.setattr("time.sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    reports: list[int] = []
    port = PacedPort(Nowhere(), Pace(rate=50), lambda frames: reports.append(frames.sent))
    for _ in range(151):
        port.send(b"x")
    assert now[0] == pytest.approx(103.0)
    assert len(reports) in (2, 3)
    assert reports == sorted(set(reports))


def test_skew_is_fixed_or_in_a_range(seed: int) -> None:
    port = PacedPort(Nowhere(), Pace(skew=parse_skew("0.5")))
    assert port.lateness() == 0.5
    port = PacedPort(Nowhere(), Pace(skew=parse_skew("0.1..0.3"), seed=seed))
    times = [port.lateness() for _ in range(100)]
    assert 0.1 <= min(times) < max(times) <= 0.3


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Pace(rate=0), "rate 0 is not a positive number"),
        (lambda: Pace(rate=float("nan")), "rate nan"),
        (lambda: Pace(loss=1.0), "loss 1 is not a probability"),
        (lambda: Pace(loss=-0.1), "loss -0.1"),
        (lambda: Pace(skew=(0.2, 0.1)), "skew 0.2..0.1"),
        (lambda: Pace(skew=(float("nan"), 1)), "skew nan"),
        (lambda: Pace(seconds=0), "0 seconds"),
        (lambda: parse_skew("late"), "neither SECONDS nor LOW..HIGH"),
        (lambda: stream_of({"wid": 0, "parameters": {"gen": 1}}), "no stream whose vectors are added"),
    ],
)
def test_impossible_options_say_so(make: Callable[[], object], says: str) -> None:
    with pytest.raises(ValueError, match=says) as caught:
        make()
    assert isinstance(caught.value, PaceError) or "stream" in says


@pytest.mark.parametrize("patience", [float("nan"), 0.0, -1.0])
def test_an_impossible_patience_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str], patience: float) -> None:
    """Refuse it before a frame is sent: beside what is no number nothing would ever be too late."""
    job = tmp_path / "job.json"
    job.write_text(json.dumps({"wid": 0, "gradients": {"gen": 1}, "local": ["127.0.0.1", 1]}))
    assert module.main("worker", job, patience=patience) == 1
    assert f"a patience of {patience:g} seconds" in json.loads(capsys.readouterr().out)["error"]


def test_values_tell_workers_numbers_and_lanes_apart() -> None:
    seen = {value(wid, seq, lane) for wid in range(8) for seq in range(100) for lane in range(64)}
    assert len(seen) == 8 * 100 * 64
    assert fault(3, [sum(value(wid, 3, 0) for wid in range(4))], 4) is None
    assert fault(3, [sum(value(wid, 3, 0) for wid in range(3))], 4) is not None
    far = [(sum(value(wid, 1 << 31, 0) for wid in range(4)) + (1 << 31)) % (1 << 32) - (1 << 31)]
    assert fault(1 << 31, far, 4) is None


def test_no_drop_but_the_pace_s() -> None:
    switch = slot_switch()
    play_rounds(switch, [Pace()] * WORKERS, 8)
    assert set(switch.model.drops) <= {DropReason.OLD_SEQ}


@pytest.mark.parametrize("kind", [kind for kind in AttackKind if kind is not AttackKind.KEYLESS])
@pytest.mark.parametrize("program", ["luwu", "slots"])
def test_attacks_of_each_kind_only_count(kind: AttackKind, program: str, rng: random.Random) -> None:
    slots = program == "slots"
    switch = slot_switch() if slots else ModelSwitch(SwitchModel(LANES, 64), Mode.REDUCE)
    switch.model.tables.switch_addresses[SWITCH_IP] = True
    switch.model.tables.bindings[WORKERS + 1] = Binding(0x020000000077, 0x0A00004D)
    local = kind is AttackKind.LOCAL
    outside = 0 if local else WORKERS + 1
    ip, udp = ("10.0.0.1", 40000) if local else ("10.0.0.77", UDP_PORT)
    sender = Sender("02:00:00:00:00:77", ip, udp, "02:00:00:00:fe:01", "10.0.0.254")
    source = attacks(kind, sender, {**description(0), "kind": program}, rng)
    for _ in range(60):
        what = next(source)
        before = switch.model.drops[what.reason]
        assert switch.model.inject(outside, what.frame) == [], what.name
        assert switch.model.drops[what.reason] == before + 1, what.name
    assert switch.model.drops.total() == 60
    assert all(not slot.contributions for slot in switch.model.slots.slots)


def test_a_player_refuses_what_its_job_does_not_have() -> None:
    port, sender = ends(slot_switch(), 0, Pace())
    with pytest.raises(ValueError, match="has no root"):
        play("root", port, sender, {**description(0), "kind": "slots"}, count=1, patience=1.0)
    with pytest.raises(ValueError, match="kind allreduce has no root"):
        play("root", port, sender, sums(0), count=1, patience=1.0)
    with pytest.raises(ValueError, match="kind allreduce has no stream 'parameters'"):
        play("worker", port, sender, sums(0), count=1, patience=1.0, stream="parameters")
    with pytest.raises(ValueError, match="kind other cannot be played"):
        play("worker", port, sender, {"kind": "other", "wid": 0}, count=1, patience=1.0)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_player_that_says_so(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Port(ModelPort):
        def __init__(self, interface: str) -> None:
            super().__init__(slot_switch(), 0)

        def __enter__(self) -> Port:
            return self

        def resolve(self, *_: object) -> str:
            return self.mac

    job = tmp_path / "job.json"
    job.write_text(json.dumps(description(0)))
    monkeypatch.setattr(module, "RawPort", Port)
    monkeypatch.setattr(module, "play", lambda *_, **__: signal.raise_signal(number))
    before = signal.signal(number, lambda *_: None)
    try:
        assert module.main("worker", job) == 1
    finally:
        signal.signal(number, before)
    assert json.loads(capsys.readouterr().out)["error"] == "ended by a signal"


@pytest.mark.parametrize("opened", [True, False])
def test_a_player_without_a_link_says_so(
    opened: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def down(*_: object, **__: object) -> None:
        raise OSError(errno.ENETDOWN, os.strerror(errno.ENETDOWN))

    class Port(ModelPort):
        def __init__(self, interface: str) -> None:
            super().__init__(slot_switch(), 0)
            self.resolve = (lambda *_: self.mac) if opened else down  # type: ignore[method-assign]

        def __enter__(self) -> Port:
            return self

    job = tmp_path / "job.json"
    job.write_text(json.dumps(description(0)))
    monkeypatch.setattr(module, "RawPort", Port)
    monkeypatch.setattr(module, "play", down)
    assert module.main("worker", job, interface="eth7") == 1
    outcome = json.loads(capsys.readouterr().out)
    assert outcome["error"] == "eth7: Network is down"
    assert ("frames" in outcome) == opened
