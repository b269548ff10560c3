"""Random nested expressions of bit<W> and int<W>, widths mixed, as P4 text and as a z3 term at once."""

from __future__ import annotations

import random

import z3
from bit_vector_programs import Inputs, Typed
from bit_vector_rows import bit, choice, constant, resized, saturated, shifted

WIDEST = 128


class Trees:
    """Draws expressions over the inputs of a program."""

    def __init__(self, rng: random.Random, inputs: Inputs) -> None:
        self._rng = rng
        self._inputs = inputs

    def tree(self, width: int, *, signed: bool, depth: int) -> Typed:
        """An expression of the type that is asked for; `depth`: of operators, casts aside."""
        if depth == 0:
            return self._leaf(width, signed=signed)
        kinds = [self._binary, self._unary, self._shift, self._conditional, self._cast]
        if not signed:
            kinds += [self._slice, self._comparison]
        if width > 1:
            kinds += [self._concatenation]
        return self._rng.choice(kinds)(width, signed, depth - 1)

    def _leaf(self, width: int, *, signed: bool) -> Typed:
        if self._rng.random() < 0.3:
            value = self._rng.choice([0, 1, (1 << width) - 1, 1 << (width - 1), self._rng.getrandbits(width)])
            return constant(value % (1 << width), width, signed=signed)
        one = self._inputs.variable(self._rng.choice(list(self._inputs.widths)), signed=signed)
        return _cast(one, width)

    def _binary(self, width: int, signed: bool, depth: int) -> Typed:
        left, right = (self.tree(width, signed=signed, depth=depth) for _ in range(2))
        x, y = left.term, right.term
        operator, term = self._rng.choice(
            [
                ("+", x + y), ("-", x - y), ("*", x * y), ("&", x & y), ("|", x | y), ("^", x ^ y),
                ("|+|", saturated(1, x, y, signed=signed)), ("|-|", saturated(-1, x, y, signed=signed)),
            ]
        )  # fmt: skip
        return Typed(f"({left.text} {operator} {right.text})", term, signed)

    def _unary(self, width: int, signed: bool, depth: int) -> Typed:
        one = self.tree(width, signed=signed, depth=depth)
        operator, term = self._rng.choice([("~", ~one.term), ("-", -one.term)])
        return Typed(f"({operator}{one.text})", term, signed)

    def _shift(self, width: int, signed: bool, depth: int) -> Typed:
        one = self.tree(width, signed=signed, depth=depth)
        amount = self.tree(self._rng.randint(1, 9), signed=False, depth=0)
        operator = self._rng.choice(["<<", ">>"])
        term = shifted(operator, one.term, amount.term, signed=signed)
        return Typed(f"({one.text} {operator} {amount.text})", term, signed)

    def _conditional(self, width: int, signed: bool, depth: int) -> Typed:
        condition = self._comparison(1, False, depth)
        yes, no = (self.tree(width, signed=signed, depth=depth) for _ in range(2))
        term = choice(condition.term == 1, yes.term, no.term)
        return Typed(f"({condition.text} == 1w1 ? {yes.text} : {no.text})", term, signed)

    def _comparison(self, width: int, signed: bool, depth: int) -> Typed:
        of_signed, of_width = self._rng.random() < 0.5, self._rng.randint(1, WIDEST)
        left, right = (self.tree(of_width, signed=of_signed, depth=depth) for _ in range(2))
        x, y = left.term, right.term
        if of_signed:
            conditions = {"<": x < y, "<=": x <= y, ">": x > y, ">=": x >= y}
        else:
            conditions = {"<": z3.ULT(x, y), "<=": z3.ULE(x, y), ">": z3.UGT(x, y), ">=": z3.UGE(x, y)}
        operator, term = self._rng.choice([*conditions.items(), ("==", x == y), ("!=", x != y)])
        return _cast(Typed(f"({left.text} {operator} {right.text} ? 1w1 : 1w0)", bit(term), signed), width)

    def _cast(self, width: int, signed: bool, depth: int) -> Typed:
        return _cast(self.tree(self._rng.randint(1, WIDEST), signed=signed, depth=depth), width)

    def _slice(self, width: int, signed: bool, depth: int) -> Typed:
        low = self._rng.randint(0, WIDEST - width)
        above = self._rng.randint(0, WIDEST - width - low)
        one = self.tree(low + width + above, signed=self._rng.random() < 0.5, depth=depth)
        high = low + width - 1
        return Typed(f"({one.text}[{high}:{low}])", z3.Extract(high, low, one.term), signed)

    def _concatenation(self, width: int, signed: bool, depth: int) -> Typed:
        below = self._rng.randrange(1, width)
        left = self.tree(width - below, signed=signed, depth=depth)
        right = self.tree(below, signed=self._rng.random() < 0.5, depth=depth)
        return Typed(f"({left.text} ++ {right.text})", z3.Concat(left.term, right.term), signed)


def _cast(one: Typed, width: int) -> Typed:
    if one.term.size() == width:
        return one
    kind = "int" if one.signed else "bit"
    return Typed(f"(({kind}<{width}>){one.text})", resized(one.term, width, signed=one.signed), one.signed)
