"""The switch model keeps the protocol's invariants whatever the network does, and a broken one is caught.

Every worker and every lane has different data; sums are checked exactly and in order by the consumers, receive
buffers and acknowledgements by the endpoints themselves.
"""

from __future__ import annotations

import random

import pytest
from faulty_lines import line_faults
from protocol_endpoints import ClockedSender, Consumer, StreamSpec, check_sum, partial
from protocol_jobs import Placement, Rack, add_all_reduce, add_broadcast, add_reduce, install, install_tree, tree
from protocol_network import Host, Network, Trouble

from catchment.sim.golden.switch_jobs import Contribution, HeartbeatTable, Slot, SlotStore, Window
from catchment.wire.generated.constants import Mode, PacketType

LANES = 8
WINDOW = 8


def spec(rng: random.Random, gen: int, count: int = 40) -> StreamSpec:
    """Half of the streams cross the wrap of the sequence numbers."""
    first = rng.choice([rng.randrange(1 << 32), (1 << 32) - count // 2])
    return StreamSpec(gen, first, count, WINDOW, LANES)


def luwu(rng: random.Random, trouble: Trouble, workers: int, count: int = 40) -> Network:
    """One switch, gradients up and parameters down at once."""
    net = Network(rng, trouble)
    net.add_switch("s", LANES)
    ports = tuple(range(1, workers + 1))
    places = [("s", p) for p in ports]
    install(net, Rack("s", ports, up=60), Mode.REDUCE, Placement(7, 0, WINDOW, 0))
    install(net, Rack("s", ports, up=60), Mode.BCAST, Placement(8, 0, 1, 1))
    add_reduce(net, spec(rng, 7, count), places, ("s", 60))
    add_broadcast(net, spec(rng, 8, count), places, ("s", 60))
    return net


def all_reduce(rng: random.Random, trouble: Trouble, workers: int, count: int = 40) -> Network:
    net = Network(rng, trouble)
    net.add_switch("s", LANES)
    ports = tuple(range(1, workers + 1))
    install(net, Rack("s", ports), Mode.ALLREDUCE, Placement(9, 16, WINDOW, 2))
    add_all_reduce(net, spec(rng, 9, count), [("s", p) for p in ports])
    return net


@pytest.mark.parametrize("workers", [1, 2, 3, 8])
def test_luwu_on_one_switch(rng: random.Random, workers: int) -> None:
    for _ in range(6):
        luwu(rng, Trouble.random(rng), workers).run()


@pytest.mark.parametrize("workers", [1, 2, 3, 8])
def test_all_reduce_on_one_switch(rng: random.Random, workers: int) -> None:
    for _ in range(6):
        all_reduce(rng, Trouble.random(rng), workers).run()


@pytest.mark.parametrize("mode", [Mode.REDUCE, Mode.BCAST, Mode.ALLREDUCE])
def test_tree(rng: random.Random, mode: Mode) -> None:
    for _ in range(5):
        net = Network(rng, Trouble.random(rng))
        racks, workers, root = tree(net, LANES)
        install_tree(net, racks, mode, Placement(5, 8, WINDOW, 1))
        stream = spec(rng, 5)
        if mode == Mode.REDUCE:
            add_reduce(net, stream, workers, root)
        elif mode == Mode.BCAST:
            add_broadcast(net, stream, workers, root)
        else:
            add_all_reduce(net, stream, workers)
        net.run()


def clocked(rng: random.Random, trouble: Trouble, slots: int) -> Network:
    """An all-reduce whose vectors carry no acknowledgements; half a window of slots is too few."""
    net = Network(rng, trouble)
    net.add_switch("s", LANES)
    places = [("s", 1), ("s", 2), ("s", 3)]
    install(net, Rack("s", (1, 2, 3)), Mode.ALLREDUCE, Placement(6, 0, slots, 0))
    stream = spec(rng, 6, 60)
    for wid, place in enumerate(places):
        consumer = Consumer(stream, check_sum(stream, [0, 1, 2]))
        sender = ClockedSender(
            stream, lambda seq, again, wid=wid: partial(stream, wid, seq, again, None), consumer, WINDOW // 2
        )
        net.hosts[place] = Host(sender, consumer, beats=False, wants=(PacketType.FA,))
    return net


def test_clocked_all_reduce(rng: random.Random) -> None:
    for _ in range(8):
        clocked(rng, Trouble.random(rng), WINDOW).run()


def test_clocked_all_reduce_needs_twice_its_window(rng: random.Random) -> None:
    def run_with_half_the_slots() -> None:
        for _ in range(20):
            net = clocked(rng, Trouble(line_faults(loss=0.3, tail=20)), WINDOW // 2)
            net.limit = 20_000
            net.run()

    with pytest.raises(AssertionError):
        run_with_half_the_slots()


def test_several_jobs_at_once(rng: random.Random) -> None:
    """Three jobs with neighbouring slots and different generations on one switch."""
    net = Network(rng, Trouble(line_faults(loss=0.05, duplicate=0.1, tail=20)))
    net.add_switch("s", LANES)
    for index, ports in enumerate([(1, 2, 3), (4, 5), (6, 7, 8, 9)]):
        gen = 100 + index
        install(net, Rack("s", ports), Mode.ALLREDUCE, Placement(gen, index * WINDOW, WINDOW, index))
        add_all_reduce(net, spec(rng, gen, 60), [("s", p) for p in ports])
    net.run()
    assert all(count == 0 for reason, count in net.switches["s"].drops.items() if reason.name != "OLD_SEQ")


def test_a_new_generation_takes_over_the_slots(rng: random.Random) -> None:
    """Members restart at different times with the next generation while frames of the old one are still about."""
    for _ in range(6):
        net = all_reduce(rng, Trouble(line_faults(loss=0.1, duplicate=0.3, tail=60)), 3, 5000)
        rack, stream = Rack("s", (1, 2, 3)), spec(rng, 10)

        def replace_rows(net: Network = net, rack: Rack = rack) -> None:
            install(net, rack, Mode.ALLREDUCE, Placement(10, 16, WINDOW, 2))
            for port in rack.ports:
                del net.switches["s"].tables.jobs[(9, port)]

        def restart(net: Network = net, stream: StreamSpec = stream, place: tuple[str, int] = ("s", 0)) -> None:
            fresh = Network(rng, Trouble())
            add_all_reduce(fresh, stream, [("s", 1), ("s", 2), ("s", 3)])
            net.hosts[place] = fresh.hosts[place]

        net.at(60 + rng.random() * 100, replace_rows)
        for port in rack.ports:
            net.at(60 + rng.random() * 100, lambda port=port, restart=restart: restart(place=("s", port)))
        net.run()
        assert all(host.consumer is not None and host.consumer.spec is stream for host in net.hosts.values())


def test_no_progress_is_noticed(rng: random.Random) -> None:
    net = all_reduce(rng, Trouble(), 2)
    del net.switches["s"].tables.jobs[(9, 2)]
    net.limit = 5_000
    with pytest.raises(AssertionError, match="no progress"):
        net.run()


class AddsDuplicates(SlotStore):
    def add(self, index: int, gen: int, seq: int, own: int, what: Contribution) -> tuple[Slot, bool] | None:
        result = super().add(index, gen, seq, own, what)
        if result is not None and result[1]:
            result[0].contributions.append(what)
        return result


class AsPrinted(SlotStore):
    """The papers' rule: no tag, the bitmap alone decides, and a slot is cleared once its sum has left."""

    def add(self, index: int, gen: int, seq: int, own: int, what: Contribution) -> tuple[Slot, bool] | None:
        self.slots[index].gen, self.slots[index].seq = gen, seq
        result = super().add(index, gen, seq, own, what)
        if result is not None and result[0].workers == 7:
            self.slots[index] = Slot()
        return result


class ForgetsTags(SlotStore):
    def add(self, index: int, gen: int, seq: int, own: int, what: Contribution) -> tuple[Slot, bool] | None:
        slot = self.slots[index]
        if slot.workers != 7:
            slot.gen, slot.seq = gen, seq
        return super().add(index, gen, seq, own, what)


class OneForAll(HeartbeatTable):
    """Takes the minimum over those who have spoken, as LuWu's text has it."""

    def minimum(self, job: int, gen: int, members: int) -> Window | None:
        heard = sum(worker for (row, worker), said in self.heard.items() if row == job and said.gen == gen)
        return super().minimum(job, gen, members & heard)


@pytest.mark.parametrize("bug", [AddsDuplicates, AsPrinted, ForgetsTags])
def test_planted_slot_bugs_are_caught(rng: random.Random, bug: type[SlotStore]) -> None:
    def break_and_run() -> None:
        for _ in range(20):
            net = all_reduce(rng, Trouble(line_faults(loss=0.2, duplicate=0.3, tail=40)), 3)
            net.switches["s"].slots = bug(64)
            net.limit = 20_000
            net.run()

    with pytest.raises(AssertionError):
        break_and_run()


def with_a_late_member(rng: random.Random) -> Network:
    """The third member says nothing until the others have had time for the whole stream, were it not for that one."""
    net = luwu(rng, Trouble(line_faults(loss=0.3, tail=40)), 3)
    net.limit = 20_000
    late = net.hosts["s", 3]
    net.hosts["s", 3] = Host(wants=late.wants)
    net.at(1500, lambda: net.hosts.update({("s", 3): late}))
    return net


def test_a_late_member_is_waited_for(rng: random.Random) -> None:
    for _ in range(3):
        net = with_a_late_member(rng)
        net.run()
        assert net.now > 1500


def test_planted_heartbeat_bug_is_caught(rng: random.Random) -> None:
    def break_and_run() -> None:
        for _ in range(10):
            net = with_a_late_member(rng)
            net.switches["s"].heartbeats = OneForAll()
            net.run()

    with pytest.raises(AssertionError, match="no progress"):
        break_and_run()


@pytest.mark.slow
@pytest.mark.parametrize("workers", [2, 5, 8, 32])
def test_long_runs(rng: random.Random, workers: int) -> None:
    for _ in range(max(2, 24 // workers)):
        luwu(rng, Trouble.random(rng), workers, 200).run()
        all_reduce(rng, Trouble.random(rng), workers, 200).run()
