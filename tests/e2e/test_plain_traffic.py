"""What is not ours goes through the switch as through any other."""

from __future__ import annotations

import subprocess
import sys

import pytest
from lab import Lab

SERVER = """
import hashlib, socket, sys
server = socket.create_server((sys.argv[1], 7008))
print("ready", flush=True)
connection, _ = server.accept()
digest, total = hashlib.sha256(), 0
while data := connection.recv(1 << 16):
    digest.update(data)
    total += len(data)
connection.sendall(f"{total} {digest.hexdigest()}".encode())
"""
CLIENT = """
import hashlib, random, socket, sys
data = random.Random(sys.argv[2]).randbytes(int(sys.argv[3]))
connection = socket.create_connection((sys.argv[1], 7008), timeout=100)
connection.sendall(data)
connection.shutdown(socket.SHUT_WR)
answer = b""
while part := connection.recv(1000):
    answer += part
assert answer.decode() == f"{len(data)} {hashlib.sha256(data).hexdigest()}", answer
print("same")
"""
PEER = """
import socket, sys
end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end.bind((sys.argv[1], 51836))
end.settimeout(120)
if sys.argv[2] == "wait":
    print("ready", flush=True)
    print(end.recvfrom(2000)[0].decode())
else:
    end.sendto(b"not for the switch", (sys.argv[2], 51836))
"""


def transfer(lab: Lab, source: str, destination: str, size: int) -> None:
    address = str(lab.topology.host(destination).ip.ip)
    server = lab.network.popen(destination, [sys.executable, "-c", SERVER, address], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    assert server.stdout.readline() == "ready\n"
    output = lab.network.run(source, [sys.executable, "-c", CLIENT, address, f"{source}-{destination}", str(size)])
    assert output == "same\n"
    assert server.wait(120) == 0


@pytest.mark.sampled(4)
def test_tcp_between_hosts(lab: Lab) -> None:
    transfer(lab, "w0", "w1", 4 << 20)
    transfer(lab, "out", "opt", 100_000)


@pytest.mark.sampled(4)
def test_tcp_across_racks(tree: Lab) -> None:
    transfer(tree, "w0", "w3", 2 << 20)
    transfer(tree, "opt", "w1", 100_000)


@pytest.mark.sampled(4)
def test_the_switch_answers_arp_for_itself_only(lab: Lab) -> None:
    switch = lab.topology.switch("s1")
    script = f"""
from catchment.sim.lab.traffic.raw_port import RawPort
with RawPort() as port:
    print(port.resolve("{switch.ip}", "{lab.topology.host("w5").ip.ip}"))
    print(port.resolve("{lab.topology.host("w6").ip.ip}", "{lab.topology.host("w5").ip.ip}"))
"""
    with lab.python("w5", "-c", script) as process:
        output, _ = process.communicate(timeout=200)
    assert output.split() == [switch.mac, lab.topology.host("w6").mac]


def test_our_port_between_two_hosts_is_plain_traffic(lab: Lab) -> None:
    """Port 51836 means us only at the switch's own address."""
    here, there = (str(lab.topology.host(h).ip.ip) for h in ("w2", "w3"))
    waiting = lab.network.popen("w3", [sys.executable, "-c", PEER, there, "wait"], stdout=subprocess.PIPE, text=True)
    assert waiting.stdout is not None
    assert waiting.stdout.readline() == "ready\n"
    lab.network.run("w2", [sys.executable, "-c", PEER, here, there])
    assert waiting.communicate(timeout=200)[0] == "not for the switch\n"


def test_neighbour_tables_hold_the_switch(lab: Lab) -> None:
    switch = lab.topology.switch("s1")
    lab.network.run(
        "w4",
        [sys.executable, "-c", f"import socket; socket.socket(2, 2).sendto(b'x', ('{switch.ip}', 9))"],
    )
    # The datagram waits for the answer; ask the kernel until it has one.
    for _ in range(200):
        neighbours = lab.network.run("w4", ["ip", "neigh", "show", str(switch.ip)])
        if switch.mac in neighbours:
            return
        lab.network.run("w4", [sys.executable, "-c", "import select; select.select([], [], [], 0.05)"])
    raise AssertionError(neighbours)
