"""Long runs of whole jobs in a C++ bench: every clock of every NIC, every vector compared bit for bit."""

from __future__ import annotations

import ctypes
import random
from dataclasses import dataclass

import pytest
from transport_network import ROOT_PORT, settings_of
from transport_nic import REJECTS, STATS, Settings, StreamSettings, library

from catchment.rtl.generated.nic_regs import Role

STAT_COUNT = 38


class _Scenario(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_uint32) for name in (
            "all_reduce", "workers", "slots", "vector_bytes", "vectors", "generations", "hard_reset", "hop", "tail",
            "restart", "seed", "host_idle", "host_stall", "net_idle", "net_stall",
        )),
        *((name, ctypes.c_double) for name in ("loss", "duplicate", "replay", "reorder")),
        ("limit", ctypes.c_uint64),
    )  # fmt: skip


class _Outcome(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_uint64) for name in (
            "clocks", "vectors", "wrong", "broken_laws", "unfinished", "frames", "lost", "replayed",
        )),
        ("stats", ctypes.c_uint64 * STAT_COUNT),
        ("busy_beats", ctypes.c_uint64),
    )  # fmt: skip


@dataclass(frozen=True)
class Job:
    """A whole run; probabilities of each line and frame, times in clocks."""

    all_reduce: bool
    workers: int
    window: int
    vectors: int
    generations: int = 1
    hard_reset: bool = False
    loss: float = 0.0
    duplicate: float = 0.0
    replay: float = 0.0
    reorder: float = 0.0
    hop: int = 60
    tail: int = 10
    restart: int = 0
    gaps: tuple[int, int, int, int] = (0, 0, 0, 0)
    base: int = 0
    rto: int = 3000
    heartbeat_interval: int = 320
    limit: int = 30_000_000
    vector_bytes: int = 256
    places: int = 1024


def settings_for(job: Job, generation: int, port: int) -> Settings:
    slots = max(64, 1 << (job.window - 1).bit_length())
    base = (job.base + generation * 0x1357_9BDF) % (1 << 32)
    up = StreamSettings(gen=100 + generation, base_seq=base, window=job.window, slots=slots)
    down = StreamSettings(gen=200 + generation, base_seq=base ^ 0xFFFF, window=job.window, slots=slots)
    tx, rx = (up, up) if job.all_reduce else (down, up) if port == job.workers else (up, down)
    return settings_of(
        port, tx, rx, all_reduce=job.all_reduce, rto=job.rto, rto_most=8 * job.rto, resend_delay=150 * port,
        heartbeat_interval=job.heartbeat_interval,
    )  # fmt: skip


def run(job: Job, seed: int) -> dict[str, int]:
    """Counters by name, after everything was found right."""
    assert ROOT_PORT  # the root's port in this bench is the one after the workers'
    members = job.workers + (not job.all_reduce)
    words: list[int] = []
    for generation in range(job.generations):
        for port in range(members):
            settings = settings_for(job, generation, port)
            words += settings.words() + settings.without().words()
    gens = [gen for generation in range(job.generations) for gen in (100 + generation, 200 + generation)]
    slots = settings_for(job, 0, 0).tx.slots
    scenario = _Scenario(
        job.all_reduce, job.workers, slots, job.vector_bytes, job.vectors, job.generations, job.hard_reset,
        job.hop, job.tail, job.restart, seed & 0xFFFF_FFFF, *job.gaps,
        job.loss, job.duplicate, job.replay, job.reorder, job.limit,
    )  # fmt: skip
    outcome = _Outcome()
    build = (("VECTOR_BYTES", job.vector_bytes), ("WINDOW", job.places)) if job.places != 1024 else ()
    worker, root = library(Role.WORKER, build), library(Role.ROOT, build)
    worker.network_run(
        ctypes.byref(scenario), (ctypes.c_uint32 * len(words))(*words), (ctypes.c_uint16 * len(gens))(*gens),
        ctypes.cast(root.nic_new, ctypes.c_void_p), ctypes.byref(outcome),
    )  # fmt: skip
    counts = {name: int(outcome.stats[index]) for name, index in STATS.items() if name != "REJECTS"}
    counts |= {"REJECT_" + name: int(outcome.stats[STATS["REJECTS"] + index]) for name, index in REJECTS.items()}
    counts |= {name: getattr(outcome, name) for name, _ in _Outcome._fields_ if name != "stats"}
    print(job, {name: count for name, count in counts.items() if count})
    assert counts["unfinished"] == 0, f"{counts['unfinished']} vectors have not come after {counts['clocks']} clocks"
    assert counts["wrong"] == 0, f"{counts['wrong']} vectors are wrong, come twice or out of order"
    assert counts["broken_laws"] == 0
    strange = {"FCS", "DESTINATION", "IPV4", "SHORT", "VERSION", "FLAGS", "TYPE", "DTYPE", "LANES", "LENGTH", "NONE"}
    assert not any(counts["REJECT_" + name] for name in strange)
    return counts


def any_job(rng: random.Random, **fixed: float) -> Job:
    choices = {
        "all_reduce": rng.random() < 0.5,
        "workers": rng.choice([1, 2, 3, 4]),
        "window": rng.choice([1, 2, 7, 32, 64, 200]),
        "loss": rng.choice([0, 0.001, 0.02, 0.2]),
        "duplicate": rng.choice([0, 0.01, 0.3]),
        "replay": rng.choice([0, 0.02, 0.3]),
        "reorder": rng.choice([0, 0, 0.3, 0.02]),
        "tail": rng.choice([2, 30]),
        "hop": rng.choice([5, 60, 300]),
        "restart": rng.choice([0, 0, 20_000]),
        "gaps": tuple(rng.choice([0, 0, 30, 150]) for _ in range(4)),
        "base": rng.choice([0, 0xFFFF_FF80, 0x7FFF_FF80, rng.getrandbits(32)]),
    }
    return Job(**(choices | fixed))  # type: ignore[arg-type]


@pytest.mark.sampled(4)
def test_jobs_under_any_faults(rng: random.Random) -> None:
    """Loss, duplication, reordering, old frames and heartbeats, switch restarts, gaps on every port, wrap."""
    seen: dict[str, int] = {}
    for case in range(12):
        # the first two surely lose, double and have frames that are waited for
        bad = {"loss": 0.2, "duplicate": 0.3, "window": 32, "workers": 2} if case < 2 else {}
        counts = run(any_job(rng, vectors=200, all_reduce=case % 2, **bad), rng.getrandbits(32))
        seen = {name: seen.get(name, 0) + count for name, count in counts.items()}
    for name in ("TX_RETRANSMISSIONS", "TX_TIMEOUTS", "TX_REQUESTS", "REJECT_DUPLICATE", "RX_SATURATED"):
        assert seen[name], f"{name} has not been covered"


@pytest.mark.sampled(8)
@pytest.mark.parametrize("hard_reset", [False, True], ids=["enable", "rst"])
def test_streams_end_in_the_middle_and_begin_again(hard_reset: bool, rng: random.Random) -> None:
    """New generations while frames of the old ones are on their way, and are delivered again later."""
    seen = 0
    for _ in range(4):
        job = any_job(rng, vectors=100, generations=5, hard_reset=hard_reset, replay=0.2)
        seen += run(job, rng.getrandbits(32))["REJECT_GENERATION"]
    assert seen, "no frame of an old generation has arrived"


@pytest.mark.sampled(4)
def test_a_clean_link_is_full() -> None:
    """Two workers, the largest window: a frame every five clocks, and nothing is ever sent twice."""
    job = Job(True, 2, 1024, 20_000, heartbeat_interval=1280)
    counts = run(job, 1)
    assert counts["TX_RETRANSMISSIONS"] == counts["TX_TIMEOUTS"] == 0
    assert counts["TX_VECTORS"] == 2 * job.vectors
    assert counts["TX_HEARTBEATS"] < job.vectors / 100
    idle = 5000 + 1030 + 5 * job.hop  # after the end, before the beginning, and while the last vectors travel
    assert counts["clocks"] - idle <= counts["busy_beats"] / 2, "a bubble"


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("vector_bytes", "places"), [(1024, 16), pytest.param(64, 4, marks=pytest.mark.slow)])
def test_other_vectors_and_windows(vector_bytes: int, places: int, rng: random.Random) -> None:
    """256 lanes and 16; windows that are smaller than what the stream is told, and that are always full."""
    for _ in range(6):
        run(any_job(rng, vectors=200, generations=2, vector_bytes=vector_bytes, places=places), rng.getrandbits(32))


@pytest.mark.slow
def test_millions_of_clocks(rng: random.Random) -> None:
    clocks = 0
    while clocks < 20_000_000:
        job = any_job(rng, vectors=1500, generations=3, hard_reset=rng.random() < 0.5, limit=200_000_000)
        clocks += run(job, rng.getrandbits(32))["clocks"]
