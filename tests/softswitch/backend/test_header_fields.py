"""Headers of any fields, as they come, as they leave and as checksums see them, against Python's own bits."""

from __future__ import annotations

import binascii
import random
from pathlib import Path

from backend_programs import switch

HEADERS = 5
WIDEST = 140  # more than two numbers of the machine's


def _widths(rng: random.Random) -> list[int]:
    """Choose up to eight fields that are whole bytes together: the last one has the bits that were left."""
    widths = [
        rng.choice([1, 3, 8, 13, 16, 32, 48, 63, 64, 65, rng.randint(1, WIDEST)]) for _ in range(rng.randint(1, 7))
    ]
    return widths if sum(widths) % 8 == 0 else [*widths, 8 - sum(widths) % 8]


def _taken(data: bytes, widths: list[int]) -> list[int]:
    rest, number = len(data) * 8, int.from_bytes(data, "big")
    values = []
    for width in widths:
        rest -= width
        values.append(number >> rest & (1 << width) - 1)
    return values


def _packed(values: list[int], widths: list[int]) -> bytes:
    number = 0
    for value, width in zip(values, widths, strict=True):
        number = number << width | value
    return number.to_bytes(sum(widths) // 8, "big")


def test_fields_leave_at_their_places_and_touch_no_others(tmp_path: Path, rng: random.Random) -> None:
    shapes = [_widths(rng) for _ in range(HEADERS)]
    fields = [[f"f{i}" for i in range(len(widths))] for widths in shapes]
    declarations = "\n".join(
        f"header h{n}_t {{ {' '.join(f'bit<{w}> {f};' for w, f in zip(widths, names, strict=True))} }}"
        for n, (widths, names) in enumerate(zip(shapes, fields, strict=True))
    )
    everything = ", ".join(f"hdr.h{n}.{name}" for n, names in enumerate(fields) for name in names)
    target = switch(
        tmp_path,
        "fields",
        declarations=declarations + "\nheader crc_t { bit<32> v; }",
        headers=" ".join(f"h{n}_t h{n};" for n in range(HEADERS)) + " crc_t crc;",
        parser=f"""
        state start {{ {" ".join(f"packet.extract(hdr.h{n});" for n in range(HEADERS))} transition accept; }}
        """,
        ingress=f"""
        sm.egress_spec = 1;
        hdr.crc.setValid();
        hash(hdr.crc.v, HashAlgorithm.crc32, 32w0, {{ {everything} }}, 33w0x100000000);
        {" ".join(f"hdr.h{n}.{name} = hdr.h{n}.{name} + 1;" for n, names in enumerate(fields) for name in names)}
        """,
        deparser=f"packet.emit(hdr.crc); {' '.join(f'packet.emit(hdr.h{n});' for n in range(HEADERS))}",
    )
    sizes = [sum(widths) // 8 for widths in shapes]
    for _ in range(100):
        frame = rng.choice([rng.randbytes(sum(sizes)), b"\xff" * sum(sizes), bytes(sum(sizes))])
        payload = rng.randbytes(9)
        wanted, at = binascii.crc32(frame).to_bytes(4, "big"), 0
        for widths, size in zip(shapes, sizes, strict=True):
            values = [v + 1 & (1 << w) - 1 for v, w in zip(_taken(frame[at : at + size], widths), widths, strict=True)]
            wanted += _packed(values, widths)
            at += size
        assert target.inject(0, frame + payload) == [(1, wanted + payload)], shapes


def test_a_varbit_that_begins_within_a_byte(tmp_path: Path, rng: random.Random) -> None:
    target = switch(
        tmp_path,
        "within",
        declarations="""
        header v_t { bit<8> n; bit<3> a; varbit<40> b; bit<5> c; bit<16> d; }
        header crc_t { bit<32> v; }
        """,
        headers="v_t v; crc_t crc;",
        parser="""
        state start { packet.extract(hdr.v, (bit<32>)packet.lookahead<bit<8>>()); transition accept; }
        """,
        ingress="""
        sm.egress_spec = 1;
        hdr.crc.setValid();
        hash(hdr.crc.v, HashAlgorithm.crc32, 32w0, { hdr.v.n, hdr.v.a, hdr.v.b, hdr.v.c, hdr.v.d }, 33w0x100000000);
        hdr.v.a = hdr.v.a + 1; hdr.v.c = hdr.v.c + 1; hdr.v.d = hdr.v.d + 1;
        """,
        deparser="packet.emit(hdr.crc); packet.emit(hdr.v);",
    )
    for _ in range(50):
        bits = rng.choice([0, 8, 16, 24, 32, 40])
        widths = [8, 3, bits, 5, 16]
        frame = bytes([bits]) + rng.randbytes(sum(widths) // 8 - 1)
        n, a, b, c, d = _taken(frame, widths)
        wanted = _packed([n, a + 1 & 7, b, c + 1 & 31, d + 1 & 0xFFFF], widths)
        assert target.inject(0, frame) == [(1, binascii.crc32(frame).to_bytes(4, "big") + wanted)]
