"""What an operator put on a switch comes back after its restart: entries, loss by the program, faults of ports."""

from __future__ import annotations

import pytest
from controlled import ControlledLab

from catchment.controlplane.client import TableEntry
from catchment.controlplane.client.replication import MulticastGroup, Replica
from catchment.controlplane.networks.port_faults import OFF, SwitchPorts
from catchment.controlplane.state.faults import clear_loss, losses, set_loss
from catchment.controlplane.topology import Target

MINE = {"dst": "02:00:00:00:99:01"}


@pytest.mark.sampled(4)
def test_what_people_wrote_survives_the_restart_of_a_switch(controlled: ControlledLab) -> None:
    network, ports = controlled.network, SwitchPorts()
    address = network.address("r1")
    embedded = controlled.topology.switch("r1").target is Target.EMBEDDED
    clean = controlled.contents()
    with network.connect("r1") as client:
        client.insert(TableEntry("l2", MINE, "forward", {"port": 2}))
        set_loss(client, [1], 0.25)
        client.insert(MulticastGroup(2000, (Replica(1, 5), Replica(2))))
    if embedded:
        ports.write(address, {2: "in.dup=0.5,out.delay=200us,seed=7"})
    controlled.operator.keep("r1")
    before, faults = controlled.contents(), ports.read(address)
    assert before != clean
    assert bool(faults) is embedded

    network.kill_switch("r1")
    controlled.controller.kill()
    network.start_switch("r1")
    controlled.controller.start()
    controlled.wait_until_up()
    assert controlled.contents() == before
    assert ports.read(address) == faults
    with network.connect("r1") as client:
        assert MulticastGroup(2000, (Replica(1, 5), Replica(2))) in list(client.each(MulticastGroup()))
        assert losses(client)
        clear_loss(client)
        client.delete(TableEntry("l2", MINE))
        client.delete(MulticastGroup(2000))
    if embedded:
        ports.write(address, {2: OFF})
    controlled.operator.keep("r1")
    assert controlled.contents() == clean
