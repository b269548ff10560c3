"""bit<W> and int<W> against Python's integers, with random operands of every storage size."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from backend_programs import switch

from catchment.softswitch.inprocess import Switch

QUICK_WIDTHS = (9, 32, 64, 100, 200)
SLOW_WIDTHS = (1, 7, 8, 16, 31, 33, 48, 65, 128, 129, 2048)


def _signed(value: int, width: int) -> int:
    return value - (1 << width) if value >> (width - 1) else value


def _saturate(value: int, low: int, high: int) -> int:
    return max(low, min(high, value))


Operation = Callable[[int, int, int, int], int]  # (a, b, shift, width) -> result, masked by the caller

UNSIGNED: dict[str, Operation] = {
    "a + b": lambda a, b, s, w: a + b,
    "a - b": lambda a, b, s, w: a - b,
    "a * b": lambda a, b, s, w: a * b,
    "a & b": lambda a, b, s, w: a & b,
    "a | b": lambda a, b, s, w: a | b,
    "a ^ b": lambda a, b, s, w: a ^ b,
    "~a": lambda a, b, s, w: ~a,
    "-a": lambda a, b, s, w: -a,
    "a |+| b": lambda a, b, s, w: _saturate(a + b, 0, (1 << w) - 1),
    "a |-| b": lambda a, b, s, w: _saturate(a - b, 0, (1 << w) - 1),
    "a << s": lambda a, b, s, w: a << s,
    "a >> s": lambda a, b, s, w: a >> s,
    "(a < b) ? a : b": lambda a, b, s, w: min(a, b),
    "(a >= b) ? a : b": lambda a, b, s, w: max(a, b),
}
SIGNED: dict[str, Operation] = {
    "a + b": lambda a, b, s, w: a + b,
    "a * b": lambda a, b, s, w: a * b,
    "-a": lambda a, b, s, w: -a,
    "a |+| b": lambda a, b, s, w: _saturate(a + b, -(1 << (w - 1)), (1 << (w - 1)) - 1),
    "a |-| b": lambda a, b, s, w: _saturate(a - b, -(1 << (w - 1)), (1 << (w - 1)) - 1),
    "a << s": lambda a, b, s, w: a << s,
    "a >> s": lambda a, b, s, w: a >> s,
    "(a < b) ? a : b": lambda a, b, s, w: min(a, b),
    "(a >= b) ? a : b": lambda a, b, s, w: max(a, b),
    "(a <= b) ? a : b": lambda a, b, s, w: min(a, b),
}


def _rounded(width: int) -> int:
    return (width + 7) // 8 * 8


def _program(width: int) -> dict[str, str]:
    pad = _rounded(width) - width
    padding = f"bit<{pad}> pad;" if pad else ""
    operands = (
        f"header in_t {{ bit<{width}> a; {padding} bit<{width}> b; {padding.replace('pad;', 'pad2;')} bit<16> s; }}"
    )
    fields, statements = [], []
    for kind, operations in (("bit", UNSIGNED), ("int", SIGNED)):
        if kind == "int" and width == 1:
            continue
        for i, expression in enumerate(operations):
            name = f"{kind[0]}{i}"
            fields.append(f"bit<{width}> {name}; " + (f"bit<{pad}> p_{name};" if pad else ""))
            text = re.sub(r"\b([ab])\b", rf"\1_{kind}", expression).replace(" s", " hdr.i.s")
            value = f"(bit<{width}>)({text})" if kind == "int" else text
            statements.append(f"hdr.o.{name} = {value};")
    locals_ = "".join(
        f"{kind}<{width}> {x}_{kind} = ({kind}<{width}>)hdr.i.{x};" for kind in ("bit", "int") for x in ("a", "b")
    )
    return {
        "declarations": operands + f"header out_t {{ {' '.join(fields)} }}",
        "headers": "in_t i; out_t o;",
        "parser": "state start { packet.extract(hdr.i); transition accept; }",
        "ingress": f"{locals_} hdr.o.setValid(); {' '.join(statements)} sm.egress_spec = 1;",
        "deparser": "packet.emit(hdr.o);",
    }


def _operand(dice: random.Random, width: int) -> int:
    edges = [0, 1, (1 << width) - 1, 1 << (width - 1), (1 << (width - 1)) - 1]
    return dice.choice(edges) & ((1 << width) - 1) if dice.random() < 0.3 else dice.getrandbits(width)


def _run(target: Switch, a: int, b: int, s: int, width: int) -> list[int]:
    size = _rounded(width) // 8
    pad = _rounded(width) - width
    frame = b"".join((v << pad).to_bytes(size, "big") for v in (a, b)) + s.to_bytes(2, "big")
    ((port, out),) = target.inject(3, frame)
    assert port == 1
    return [int.from_bytes(out[i : i + size], "big") >> pad for i in range(0, len(out), size)]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("width", [*QUICK_WIDTHS, *(pytest.param(w, marks=pytest.mark.slow) for w in SLOW_WIDTHS)])
def test_every_operation_is_pythons(width: int, tmp_path: Path, rng: random.Random) -> None:
    dice = rng
    target = switch(tmp_path, f"arithmetic_{width}", **_program(width))
    mask = (1 << width) - 1
    for _ in range(60):
        a, b = _operand(dice, width), _operand(dice, width)
        s = dice.choice([0, 1, width - 1, width, width + 1, dice.randrange(65536), dice.randrange(width + 1)])
        results = iter(_run(target, a, b, s, width))
        for expression, operation in UNSIGNED.items():
            wanted = operation(a, b, s, width) & mask
            assert next(results) == wanted, f"bit<{width}>: {expression}, a={a:#x} b={b:#x} s={s}"
        if width == 1:
            continue
        for expression, operation in SIGNED.items():
            wanted = operation(_signed(a, width), _signed(b, width), s, width) & mask
            assert next(results) == wanted, f"int<{width}>: {expression}, a={a:#x} b={b:#x} s={s}"
