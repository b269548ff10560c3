"""Every language's codec agrees on random headers: Python, C++, Scapy and the Wireshark dissector."""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.utils import wrpcap

from catchment.wire.frame import Frame, load
from catchment.wire.generate import OUTPUT
from catchment.wire.generated.constants import HEADER_BYTES, UDP_PORT, UDP_PORTS, Flag, Header, PacketType
from catchment.wire.generated.scapy_layers import Catchment, Lanes

FRAME: Frame = load()


def _random_header(rng: random.Random) -> Header:
    values = {}
    for field in FRAME.fields:
        low = -(1 << field.bits - 1) if field.signed else 0
        values[field.name] = rng.choice([low, low + (1 << field.bits) - 1, rng.randrange(low, low + (1 << field.bits))])
    return Header(**values)


def _reference_bytes(header: Header) -> bytes:
    """The definition: the fields one after another, most significant bit first."""
    bits = "".join(format(getattr(header, f.name) & (1 << f.bits) - 1, f"0{f.bits}b") for f in FRAME.fields)
    return int(bits, 2).to_bytes(HEADER_BYTES, "big")


def test_python_codec(rng: random.Random) -> None:
    for _ in range(500):
        header = _random_header(rng)
        data = header.pack()
        assert data == _reference_bytes(header)
        assert Header.unpack(b"xx" + data, 2) == header


def test_cpp_codec(rng: random.Random, tmp_path: Path) -> None:
    headers = [_random_header(rng) for _ in range(200)]
    fields = ", ".join(f"+h.{f.name}" for f in FRAME.fields)
    formats = " ".join("%lld" for _ in FRAME.fields)
    casts = ", ".join(f"static_cast<long long>({f})" for f in fields.split(", "))
    source = tmp_path / "codec.cpp"
    source.write_text(
        f"""#include <cstdio>
#include "wire.hpp"
int main() {{
  std::uint8_t in[catchment::wire::kHeaderBytes], out[catchment::wire::kHeaderBytes];
  while (std::fread(in, 1, sizeof in, stdin) == sizeof in) {{
    const auto h = catchment::wire::decode(in);
    catchment::wire::encode(h, out);
    for (unsigned i = 0; i < sizeof in; ++i)
      if (in[i] != out[i]) return 2;
    std::printf("{formats}\\n", {casts});
  }}
}}
"""
    )
    binary = tmp_path / "codec"
    flags = ["-std=c++20", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-fsanitize=undefined"]
    subprocess.run(["g++", *flags, f"-I{OUTPUT}", str(source), "-o", str(binary)], check=True)
    output = subprocess.run(
        [str(binary)], input=b"".join(h.pack() for h in headers), stdout=subprocess.PIPE, check=True
    )
    decoded = [Header(*map(int, line.split())) for line in output.stdout.decode().splitlines()]
    assert decoded == headers


def test_scapy_layer(rng: random.Random) -> None:
    for _ in range(200):
        header = _random_header(rng)._replace(lanes=0)
        layer = Catchment(header.pack())
        assert {f.name: int(getattr(layer, f.name)) for f in FRAME.fields} == header._asdict()
        assert bytes(Catchment(**header._asdict())) == header.pack()


def test_scapy_vector(rng: random.Random) -> None:
    values = [rng.randrange(-(1 << 31), 1 << 31) for _ in range(8)]
    frame = Ether() / IP() / UDP(dport=UDP_PORT) / Catchment(type=PacketType.PA, lanes=8) / Lanes(values=values)
    parsed = Ether(bytes(frame))
    assert parsed[Lanes].values == values
    short = Ether(bytes(frame)[:-1])
    assert Lanes not in short


def _dissect(pcap: Path) -> list[dict[str, str]]:
    command = [
        "tshark",
        "-r",
        str(pcap),
        "-X",
        f"lua_script:{OUTPUT / 'catchment.lua'}",
        "-T",
        "json",
        "--no-duplicate-keys",
    ]
    output = subprocess.run(command, capture_output=True, check=True).stdout
    return [packet["_source"]["layers"]["catchment"] for packet in json.loads(output)]


@pytest.mark.parametrize("port", [UDP_PORT, UDP_PORT + 1, UDP_PORT + 63, UDP_PORT + UDP_PORTS - 1])
def test_wireshark_dissects_every_port_that_a_job_uses(port: int, rng: random.Random, tmp_path: Path) -> None:
    header = _random_header(rng)._replace(type=PacketType.PA, lanes=0)
    wrpcap(str(tmp_path / "one.pcap"), [Ether() / IP() / UDP(sport=1, dport=port, chksum=0) / header.pack()])
    (tree,) = _dissect(tmp_path / "one.pcap")
    assert int(tree["catchment.seq"], 0) == header.seq


def test_wireshark_dissector(rng: random.Random, tmp_path: Path) -> None:
    headers = [_random_header(rng)._replace(type=kind, lanes=0) for kind in PacketType]
    frames = [Ether() / IP() / UDP(sport=1, dport=UDP_PORT, chksum=0) / h.pack() for h in headers]
    vector = Header(type=PacketType.FA, lanes=2, flags=Flag.SAT)
    frames.append(
        Ether() / IP() / UDP(sport=1, dport=UDP_PORT, chksum=0) / (vector.pack() + b"\xff\xff\xff\xfe" + b"\0\0\0\7")
    )
    frames.append(Ether() / IP() / UDP(sport=1, dport=UDP_PORT, chksum=0) / (vector.pack() + b"\xff\xff\xff\xfe"))
    pcap = tmp_path / "frames.pcap"
    wrpcap(str(pcap), frames)
    trees = _dissect(pcap)
    for header, tree in zip(headers, trees, strict=False):
        shown = {f.name: int(tree[f"catchment.{f.name}"], 0) for f in FRAME.fields}
        assert shown == header._asdict()
    assert trees[-2]["catchment.value"] == ["-2", "7"]
    assert "_ws.expert" not in trees[-2]
    assert "payload length disagrees with lanes" in json.dumps(trees[-1])


@pytest.mark.parametrize("length", range(HEADER_BYTES))
def test_short_input_raises(length: int) -> None:
    with pytest.raises(Exception, match="unpack_from requires"):
        Header.unpack(bytes(length))
