"""Checksums and hashes against Python's own."""

from __future__ import annotations

import binascii
import random
from pathlib import Path

from backend_programs import switch


def _crc16(data: bytes) -> int:
    rest = 0
    for byte in data:
        rest ^= byte
        for _ in range(8):
            rest = rest >> 1 ^ (0xA001 if rest & 1 else 0)
    return rest


def _csum16(data: bytes) -> int:
    data += bytes(len(data) % 2)
    total = sum(int.from_bytes(data[i : i + 2], "big") for i in range(0, len(data), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def test_hash_algorithms(tmp_path: Path, rng: random.Random) -> None:
    data = "{ hdr.h.a, hdr.h.b, hdr.h.c }"
    target = switch(
        tmp_path,
        "hashes",
        declarations="""
        header h_t { bit<4> a; bit<20> b; bit<32> c; }
        header o_t { bit<32> v; bit<16> w; bit<16> s; bit<64> i; bit<8> m; bit<16> x; }
        """,
        headers="h_t h; o_t o;",
        parser="state start { packet.extract(hdr.h); transition accept; }",
        ingress=f"""
        sm.egress_spec = 1;
        hdr.o.setValid();
        hash(hdr.o.v, HashAlgorithm.crc32, 32w0, {data}, 33w0x100000000);
        hash(hdr.o.w, HashAlgorithm.crc16, 16w0, {data}, 17w0x10000);
        hash(hdr.o.s, HashAlgorithm.csum16, 16w0, {data}, 17w0x10000);
        hash(hdr.o.i, HashAlgorithm.identity, 64w0, {data}, 64w0xFFFFFFFFFFFFFFFF);
        hash(hdr.o.m, HashAlgorithm.crc32, 8w100, {data}, 8w10);
        hash(hdr.o.x, HashAlgorithm.xor16, 16w0, {data}, 17w0x10000);
        """,
        deparser="packet.emit(hdr.o);",
    )
    for _ in range(50):
        frame = rng.randbytes(7)
        ((_, out),) = target.inject(0, frame)
        crc = binascii.crc32(frame)
        assert int.from_bytes(out[0:4], "big") == crc
        assert int.from_bytes(out[4:6], "big") == _crc16(frame)
        assert int.from_bytes(out[6:8], "big") == _csum16(frame)
        assert int.from_bytes(out[8:16], "big") == int.from_bytes(frame, "big")
        assert out[16] == 100 + crc % 10
        words = frame + b"\0"
        assert out[17:19] == bytes(
            a ^ b ^ c ^ d for a, b, c, d in zip(*(words[i : i + 2] for i in range(0, 8, 2)), strict=True)
        )


def test_checksums_verify_and_update(tmp_path: Path, rng: random.Random) -> None:
    fields = "{ hdr.h.a, hdr.h.b }"
    target = switch(
        tmp_path,
        "checksums",
        declarations="header h_t { bit<32> a; bit<16> b; bit<16> sum; bit<16> all; }",
        headers="h_t h;",
        parser="state start { packet.extract(hdr.h); transition accept; }",
        verify=f"verify_checksum(hdr.h.a != 0, {fields}, hdr.h.sum, HashAlgorithm.csum16);",
        ingress="sm.egress_spec = sm.checksum_error == 1 ? 9w2 : 1; hdr.h.b = hdr.h.b + 1;",
        compute=f"""
        update_checksum(hdr.h.isValid(), {fields}, hdr.h.sum, HashAlgorithm.csum16);
        update_checksum_with_payload(hdr.h.isValid(), {fields}, hdr.h.all, HashAlgorithm.csum16);
        """,
        deparser="packet.emit(hdr.h);",
    )
    for size in range(40):
        head, payload = b"\1" + rng.randbytes(5), rng.randbytes(size)
        changed = head[:4] + ((int.from_bytes(head[4:], "big") + 1) & 0xFFFF).to_bytes(2, "big")
        for port, found in ((1, _csum16(head)), (2, _csum16(head) ^ 1)):
            out = target.inject(0, head + found.to_bytes(2, "big") + b"\0\0" + payload)
            sums = _csum16(changed).to_bytes(2, "big") + _csum16(changed + payload).to_bytes(2, "big")
            assert out == [(port, changed + sums + payload)]


def test_fields_of_invalid_headers_are_left_out(tmp_path: Path, rng: random.Random) -> None:
    target = switch(
        tmp_path,
        "mixed",
        declarations="header h_t { bit<4> a; bit<12> b; } header o_t { bit<32> all; }",
        headers="h_t x; h_t y; o_t o;",
        parser="""
        state start { transition select(sm.ingress_port) { 1: x_first; 2: y_first; 3: x_first; default: accept; } }
        state x_first { packet.extract(hdr.x); transition select(sm.ingress_port) { 3: y_first; default: accept; } }
        state y_first { packet.extract(hdr.y); transition accept; }
        """,
        ingress="""
        sm.egress_spec = 1;
        hdr.o.setValid();
        hash(hdr.o.all, HashAlgorithm.crc32, 32w0, { hdr.x.a, hdr.x.b, 16w0x1234, hdr.y.a, hdr.y.b, hdr.x.b, hdr.y.a },
             33w0x100000000);
        """,
        deparser="packet.emit(hdr.o);",
    )
    for _ in range(20):
        words = rng.randbytes(4)
        x, y = f"{int.from_bytes(words[:2], 'big'):016b}", f"{int.from_bytes(words[2:], 'big'):016b}"
        constant = f"{0x1234:016b}"
        for port, frame, bits in (
            (1, words[:2], x + constant + x[4:]),
            (2, words[2:], constant + y + y[:4]),
            (3, words, x + constant + y + x[4:] + y[:4]),
            (4, b"", constant),
        ):
            size = -(-len(bits) // 8)
            hashed = int(bits.ljust(8 * size, "0"), 2).to_bytes(size, "big")
            ((_, out),) = target.inject(port, frame)
            assert int.from_bytes(out, "big") == binascii.crc32(hashed)
