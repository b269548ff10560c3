"""An attacker on a port of its own while a job runs: no payload changes, and each frame is counted at that port.

Every kind of `catchment traffic attacker` that needs no place on a member's host, as raw frames of its own making.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter

import pytest
from live_job import JOB, OUTSIDER, ROOT_HOST, LiveJob
from running_controller import until

from catchment.controlplane.client import SwitchClient
from catchment.controlplane.deployment.store import read_store
from catchment.controlplane.diagnosis.stats import REFUSALS, drops, refused
from catchment.sim.lab.traffic.attack_kind import AttackKind
from catchment.sim.lab.traffic.attacker import Attack
from catchment.sim.lab.traffic.frames import Sender
from catchment.sim.lab.traffic.kinds import attacks
from catchment.softswitch.shm import Port

_FRAMES = 80  # of a kind, at a victim


def all_attacks(live: LiveJob, rng: random.Random) -> list[Attack]:
    """Frames of each kind at a worker and at the optimizer node."""
    outsider, switch = live.topology.host(OUTSIDER), live.topology.switch("s1")
    sender = Sender(outsider.mac, str(outsider.ip.ip), 40_000, switch.mac, str(switch.ip))
    plan = read_store(live.topology, live.controller.settings.folder).jobs[JOB]
    made: list[Attack] = []
    for kind, victim in itertools.product(AttackKind, ("w0", ROOT_HOST)):
        if kind not in (AttackKind.LOCAL, AttackKind.KEYLESS):
            frames = attacks(kind, sender, plan.describe(victim), rng, live.topology.host(victim).mac)
            made += itertools.islice(frames, _FRAMES)
    rng.shuffle(made)
    return made


@pytest.mark.sampled(4)
def test_an_attacker_on_a_port_changes_no_payload(seed: int, rng: random.Random) -> None:
    with (
        LiveJob(seed) as live,
        SwitchClient.connect(live.address, name="s1", read_only=True, timeout=60.0) as client,
        Port.attach(live.folder / OUTSIDER, timeout=60.0) as port,
    ):
        number = live.topology.host(OUTSIDER).link.port
        others = [host.link.port for name, host in live.topology.hosts.items() if name != OUTSIDER]
        live.until_exchanged(2)
        before = Counter(drops(client))
        made = all_attacks(live, rng)
        assert port.send([attack.frame for attack in made], timeout=60.0) == len(made)
        wanted = Counter(attack.reason.name for attack in made)
        until(lambda: not wanted - (Counter(drops(client)) - before), "every frame is counted under its reason")
        live.until_exchanged(3)
        assert live.wrong() == []
        guilty = {reason: frames for (_, reason), frames in refused(client, [number], REFUSALS).items()}
        assert guilty == {reason: frames for reason, frames in wanted.items() if reason in REFUSALS}
        assert refused(client, others, REFUSALS) == {}, "nobody else is blamed"
