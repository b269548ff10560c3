"""Ranks of a job with tags go on past the end of a key: others take its place while the communicator lives."""

from __future__ import annotations

import random
import threading
from typing import Any

import numpy as np
import pytest
from live_ranks import ELEMENTS, JOB, LANES, TERM_BITS, WAIT, LiveRanks, add_up, together
from running_controller import QUICK, until, vanish

from catchment.controlplane.deployment.store import open_store
from catchment.host.collectives import CollectiveError, Communicator
from catchment.host.membership import Description, Membership
from catchment.sim.golden import tags
from catchment.sim.lab.traffic.frames import Sender
from catchment.softswitch.shm import Port
from catchment.wire.generated import controller_pb2 as pb
from catchment.wire.generated.constants import UDP_PORT
from catchment.wire.generated.scapy_layers import Catchment

VECTORS = 1 + -(-ELEMENTS // LANES)
TERM = 1 << TERM_BITS


def operations(terms: int) -> int:
    """So many that their vectors reach into the term after these."""
    return terms * TERM // VECTORS + 10


def test_parts_of_a_job_have_keys_of_their_own(seed: int) -> None:
    """A part that a split made goes through several keys, and the job of all keeps its first."""
    with LiveRanks(3) as live:

        def rank(number: int, host: str) -> str:
            with live.join(host) as member:
                ranks = live.communicator(member)
                member.wait_complete(WAIT)
                (part,) = member.split(number // 2, number, timeout=WAIT)
                with Communicator.of_description(part, timeout=WAIT) as own:
                    member.follow(own)
                    add_up(own, seed, range(operations(4)))
                add_up(ranks, seed, range(3))
                ranks.barrier().wait(WAIT)
                ranks.close()
                return part.label

        labels = together(rank, live.names)
        assert labels["w0"] == labels["w1"] != labels["w2"], labels
        with open_store(live.topology, live.controller.settings.folder) as stored:
            parts = stored.get(JOB).parts
        assert all(parts[label].stream("sums").term >= 3 for label in labels.values())
        assert live.stream().term == 0 and live.epoch() == 1
        assert live.refused() == 0


def test_a_host_s_place_that_others_take_has_one_key() -> None:
    """Several ranks on a host have no membership of their own to ask with: their key has an end, as in a job file."""
    message = pb.Description(
        job=JOB, kind="allreduce", host="w0", role="peer", streams=[pb.Stream(name="sums", gen=1, workers=2, slots=4,
        lanes=LANES, param_bytes=64, key="ab" * 16, term_bits=30)],
    )  # fmt: skip
    description = Description.of(message, 1)
    assert description.streams["sums"].term_bits == 30
    assert description.as_member()["sums"]["term_bits"] == 0


def renewed(live: LiveRanks, terms: int, seed: int) -> None:
    """Every rank sums through so many terms with one communicator; all is right, and no frame was refused."""

    def rank(_: int, host: str) -> dict[str, int]:
        with live.join(host) as member:
            ranks = live.communicator(member)
            member.wait_complete(WAIT)
            add_up(ranks, seed, range(operations(terms)))
            ranks.barrier().wait(WAIT)
            stats = ranks.stats()
            ranks.close()
            return stats

    for host, stats in together(rank, live.names).items():
        assert isinstance(stats, dict), f"{host}: {stats!r}"
        assert stats["forged"] == 0
    assert live.stream().term >= terms - 1
    assert live.epoch() == 1, "no generation was replaced, and nobody went back"
    assert live.refused() == 0


@pytest.mark.sampled(2)
@pytest.mark.parametrize("udp", [False, True], ids=["shm", "udp"])
@pytest.mark.parametrize("hosts", [2, 4])
def test_sums_go_on_over_several_keys(hosts: int, udp: bool, seed: int) -> None:
    with LiveRanks(hosts, udp=udp) as live:
        first = live.stream().key
        renewed(live, 6, seed)
        stream = live.stream()
        assert stream.odd_key and first not in (stream.key, stream.odd_key)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("udp", [False, True], ids=["shm", "udp"])
def test_sums_go_on_while_frames_are_lost(udp: bool, seed: int) -> None:
    with LiveRanks(3, udp=udp, fault=f"loss=0.02,dup=0.02,reorder=0.02,seed={seed % (1 << 16)}") as live:
        renewed(live, 5, seed)


def test_a_recorded_frame_of_an_old_key_is_refused_and_counted(seed: int, rng: random.Random) -> None:
    """What was right in the first term is BAD_TAG later; the same number under the present key passes that check."""
    with LiveRanks(2) as live:
        old = live.stream()
        renewed(live, 4, seed)
        now = live.stream()
        at, number = live.topology.host("w0"), rng.randrange(TERM)
        switch = live.topology.switch("s1")
        words = {"local": [str(at.ip.ip), UDP_PORT], "switch": [str(switch.ip), UDP_PORT]}
        frame = Sender.of(words, at.mac, switch.mac).vector([9] * LANES, gen=now.gen, seq=number)
        frame[Catchment].wid = 0
        with Port.attach(live.path("w0"), timeout=WAIT) as port:
            port.send([tags.signed_frame(bytes(frame), bytes.fromhex(old.key))] * 3)
            until(lambda: live.refused() == 3, "the switch refuses the frames")
            port.send([tags.signed_frame(bytes(frame), bytes.fromhex(now.key))])
            port.send([tags.signed_frame(bytes(frame), bytes.fromhex(old.key))])
            until(lambda: live.refused() == 4, "the switch refuses one more")


def test_ranks_whose_controller_is_away_go_on_to_the_end_of_their_keys(
    seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Then all fail at the same vector, and the error says who has not given the next key."""
    with LiveRanks(2) as live:
        gone = Gate(len(live.names))

        def rank(_: int, host: str) -> tuple[int, CollectiveError]:
            member = live.join(host)
            ranks = live.communicator(member, timeout=4.0)
            member.wait_complete(WAIT)
            gone.wait(live.controller.stop)
            for operation in range(operations(3)):
                try:
                    add_up(ranks, seed, range(operation, operation + 1))
                except CollectiveError as error:
                    return operation, error
            raise AssertionError("the keys had no end")

        ends = together(rank, live.names)
        # Threads of the memberships, which nobody leaves, ask for the key and say that none comes.
        until(lambda: "no new key for the job's frames" in caplog.text, "a membership says that no key comes")
    assert all(isinstance(end, tuple) for end in ends.values()), ends
    assert len({operation for operation, _ in ends.values()}) == 1
    for _, error in ends.values():
        assert error.kind == "spent" and error.fatal and error.seq == 2 * TERM - 1
        assert str(error.seq) in str(error) and "controller" in str(error.hint)


def test_a_controller_that_comes_back_in_time_is_asked_again(seed: int) -> None:
    """Ranks wait at the end of their keys, without an error, and go on with the next."""
    with LiveRanks(2) as live:
        gone = Gate(len(live.names))

        def rank(number: int, host: str) -> None:
            with live.join(host) as member:
                ranks = live.communicator(member, timeout=30.0)
                member.wait_complete(WAIT)
                gone.wait(live.controller.stop)
                work = [ranks.all_reduce(np.full(ELEMENTS, number + 1, np.int32)) for _ in range(2 * TERM)]
                until(lambda: ranks.key_due == 1 and ranks.stats()["in_flight"] == 0, "the keys are spent", 30.0)
                assert not work[-1].done()
                back.wait(live.controller.start)
                for one in work:
                    one.wait(WAIT)
                add_up(ranks, seed, range(operations(2)))
                ranks.close()

        back = Gate(len(live.names))
        results = together(rank, live.names)
        assert set(results.values()) == {None}, results
        assert live.epoch() == 1 and live.stream().term >= 2


def test_who_does_not_ask_is_named_and_a_death_meanwhile_ends_the_wait() -> None:
    """A member keeps the others from a key, and dies: they learn of it as ever, and get the keys of the next epoch."""
    with LiveRanks(3, timing=QUICK) as live:

        def rank(number: int, host: str) -> Any:
            member = live.join(host)
            ranks = silent(member) if host == "w2" else live.communicator(member)
            member.wait_complete(WAIT)
            try:
                for _ in range(operations(3)):
                    work = ranks.all_reduce(np.full(ELEMENTS, number + 1, np.int32))
                    if host == "w2" and ranks.key_due:
                        until(lambda: "w2" in trouble(live), "the controller names who has not asked")
                        vanish(member)
                        ranks.close(0.0)
                        return "died"
                    work.wait(WAIT)
            except CollectiveError as error:
                if not member.superseded(WAIT):
                    raise AssertionError("no other generations came") from error
                member.leave()
                return error.kind, member.cause, member.description.streams["sums"]
            raise AssertionError("nobody noticed the death")

        before = live.stream()
        results = together(rank, live.names)
        after = live.stream()
    assert results["w2"] == "died", results
    for host in ("w0", "w1"):
        kind, cause, stream = results[host]
        assert kind in ("closed", "missing") and "w2 is lost" in cause
        assert stream.gen == after.gen != before.gen
        assert stream.key == after.key != before.key and after.term == 0 and after.odd_key == ""


def trouble(live: LiveRanks) -> str:
    with live.controller.operator() as operator:
        return str(operator.job(JOB).trouble)


def silent(member: Membership) -> Communicator:
    """A rank whose member asks for no keys."""
    member.take(lambda _: Nothing())
    return Communicator.of_description(member.description, timeout=WAIT)


class Nothing:
    """What a member holds that makes its rank elsewhere."""

    def close(self, linger: float) -> None:
        """Nothing."""


class Gate:
    """A place where threads meet; one of them does something before all go on."""

    def __init__(self, threads: int) -> None:
        self._met = threading.Barrier(threads)

    def wait(self, deed: Any) -> None:
        if self._met.wait(WAIT) == 0:
            deed()
        self._met.wait(WAIT)
