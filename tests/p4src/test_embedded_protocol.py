"""The compiled program itself carries the protocol under loss, duplication, reordering and restarts.

Every switch of the network is a model and an embedded target side by side: each frame goes into both, and what leaves
is compared.
"""

from __future__ import annotations

import random

import pytest
from embedded_target import EmbeddedTarget
from protocol_endpoints import StreamSpec
from protocol_jobs import (
    Placement,
    Rack,
    add_all_reduce,
    add_broadcast,
    add_reduce,
    install,
    install_tree,
    tree,
)
from protocol_network import Network, Trouble
from register_view import register_view
from scenarios import Build
from targets import Output, by_port

from catchment.sim.golden.switch_model import SwitchModel
from catchment.wire.generated.constants import Mode

BUILD = Build(lanes=8, slots=64, max_workers=8, jobs=4)
WINDOW = 8


class Paired(SwitchModel):
    """A model that checks the compiled program at every frame; tables are fixed once the first frame is in."""

    def __init__(self, lanes: int) -> None:
        self.target = EmbeddedTarget(BUILD)  # which the model restarts when it is made
        self.loaded = False
        super().__init__(lanes, BUILD.slots, BUILD.max_workers, BUILD.jobs)

    def inject(self, port: int, frame: bytes) -> Output:
        if not self.loaded:
            self.target.load(self.tables)
            self.loaded = True
        expected = super().inject(port, frame)
        assert by_port(self.target.switch.inject(port, frame)) == by_port(expected), f"port {port}: {frame.hex()}"
        return expected

    def restart(self) -> None:
        super().restart()
        for name in register_view(self):
            self.target.switch.write_register(name, None, 0)


def stream(rng: random.Random, gen: int) -> StreamSpec:
    return StreamSpec(gen, rng.choice([rng.randrange(1 << 32), (1 << 32) - 20]), 40, WINDOW, BUILD.lanes)


def finish(net: Network) -> None:
    """Run, then compare counters and state."""
    net.run()
    for switch in net.switches.values():
        assert isinstance(switch, Paired)
        assert switch.target.drops() == {int(r): count for r, count in switch.drops.items() if count}
        for name, cells in register_view(switch).items():
            assert switch.target.switch.read_registers(name) == cells, name


@pytest.mark.sampled(4)
def test_luwu_and_all_reduce_on_one_switch(rng: random.Random) -> None:
    for _ in range(4):
        net = Network(rng, Trouble.random(rng), make_switch=Paired)
        net.add_switch("s", BUILD.lanes)
        ports, places = (1, 2, 3), [("s", 1), ("s", 2), ("s", 3)]
        install(net, Rack("s", ports, up=30), Mode.REDUCE, Placement(7, 0, WINDOW, 0))
        install(net, Rack("s", ports, up=30), Mode.BCAST, Placement(8, 0, 1, 1))
        install(net, Rack("s", (4, 5, 6, 7)), Mode.ALLREDUCE, Placement(9, 16, WINDOW, 2))
        add_reduce(net, stream(rng, 7), places, ("s", 30))
        add_broadcast(net, stream(rng, 8), places, ("s", 30))
        add_all_reduce(net, stream(rng, 9), [("s", p) for p in (4, 5, 6, 7)])
        finish(net)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("mode", [Mode.REDUCE, Mode.BCAST, Mode.ALLREDUCE])
def test_tree(rng: random.Random, mode: Mode) -> None:
    for _ in range(2):
        net = Network(rng, Trouble.random(rng), make_switch=Paired)
        racks, workers, root = tree(net, BUILD.lanes)
        install_tree(net, racks, mode, Placement(5, 8, WINDOW, 1))
        if mode == Mode.REDUCE:
            add_reduce(net, stream(rng, 5), workers, root)
        elif mode == Mode.BCAST:
            add_broadcast(net, stream(rng, 5), workers, root)
        else:
            add_all_reduce(net, stream(rng, 5), workers)
        finish(net)
