"""Random expressions of a given type."""

from __future__ import annotations

import random
from collections.abc import Callable

from generator_scope import BOOL, Named, Num, Options, Scope, Type, Variable, random_num

ARITHMETIC = ("+", "-", "*", "&", "|", "^", "|+|", "|-|")


class Expressions:
    """Writes expressions that compile and, if strict, whose values the specification fixes."""

    def __init__(self, rng: random.Random, options: Options) -> None:
        self.rng = rng
        self.options = options

    def literal(self, t: Num) -> str:
        """Small, large or any."""
        top = (1 << (t.width - 1)) - 1 if t.signed else (1 << t.width) - 1
        value = self.rng.choice((0, 1, top, top >> 1, self.rng.randint(0, top), self.rng.randint(0, min(top, 9))))
        value = min(value, top)
        text = f"{t.width}{'s' if t.signed else 'w'}{value}"
        return f"(-{text})" if t.signed and self.rng.random() < 0.4 else text

    def read(self, variable: Variable, scope: Scope, fallback: str) -> str:
        """A variable; of a header that may be invalid only when it is not."""
        if not variable.header or variable.header in scope.valid or not self.options.strict:
            return variable.text
        return f"({variable.header}.isValid() ? {variable.text} : {fallback})"

    def of(self, t: Type, scope: Scope, depth: int | None = None) -> str:
        """Any expression of type `t`."""
        depth = self.options.depth if depth is None else depth
        if isinstance(t, Num):
            return self.number(t, scope, depth)
        if t == BOOL:
            return self.truth(scope, depth)
        return self.named(t, scope, depth)

    def named(self, t: Named, scope: Scope, depth: int) -> str:
        found = scope.of_type(t)
        if t.members and (not found or self.rng.random() < 0.4):
            return f"{t.name}.{self.rng.choice(t.members)}"
        if found and (depth <= 0 or self.rng.random() < 0.7):
            return self.read(self.rng.choice(found), scope, self.default(t))
        if depth > 0 and t.members:
            return f"({self.truth(scope, depth - 1)} ? {self.named(t, scope, 0)} : {self.named(t, scope, 0)})"
        if t.fields and not t.members:
            return f"({t.name}){{{', '.join(self.of(f, scope, max(0, depth - 1)) for _, f in t.fields)}}}"
        return self.default(t)

    def default(self, t: Type) -> str:
        """A constant of the type."""
        if isinstance(t, Num):
            return self.literal(t)
        if t == BOOL:
            return "false"
        if t.members:
            return f"{t.name}.{t.members[0]}"
        return f"({t.name}){{{', '.join(self.default(f) for _, f in t.fields)}}}"

    # Numbers ----------------------------------------------------------------------------------------------------------

    def number(self, t: Num, scope: Scope, depth: int) -> str:
        if depth <= 0:
            return self.leaf(t, scope)
        makers: list[Callable[[Num, Scope, int], str]] = [
            self._arithmetic,
            self._arithmetic,
            self._shift,
            self._unary,
            self._mux,
            self._converted,
            self._converted,
            self._slice,
            self._concat,
            self._divided,
            self._called,
        ]
        return self.rng.choice(makers)(t, scope, depth)

    def leaf(self, t: Num, scope: Scope) -> str:
        found = scope.of_type(t)
        if found and self.rng.random() < 0.8:
            return self.read(self.rng.choice(found), scope, self.literal(t))
        numbers = [v for v in scope.visible() if isinstance(v.type, Num)]
        if numbers and self.rng.random() < 0.7:
            variable = self.rng.choice(numbers)
            assert isinstance(variable.type, Num)
            return self.cast(self.read(variable, scope, self.literal(variable.type)), variable.type, t)
        return self.literal(t)

    @staticmethod
    def cast(text: str, source: Num, target: Num) -> str:
        """Only between equal widths or equal signedness, so in two steps if need be."""
        if source == target:
            return text
        if source.signed != target.signed and source.width != target.width:
            text = f"({Num(source.width, target.signed)})({text})"
        return f"(({target})({text}))"

    def _arithmetic(self, t: Num, scope: Scope, depth: int) -> str:
        operator = self.rng.choice(ARITHMETIC)
        return f"({self.number(t, scope, depth - 1)} {operator} {self.number(t, scope, depth - 1)})"

    def _shift(self, t: Num, scope: Scope, depth: int) -> str:
        operator = self.rng.choice(("<<", ">>"))
        left = self.number(t, scope, depth - 1)
        if self.rng.random() < 0.4:
            amount = self.rng.choice((0, 1, t.width - 1, t.width, t.width + 3))
            return f"({left} {operator} {min(amount, 256) if self.options.strict else amount})"  # p4c's limit
        width = self.rng.choice((1, 3, 4, 7, 8) if self.options.strict else (1, 3, 8, 16, 64, 100))
        return f"({left} {operator} {self.number(Num(width), scope, depth - 1)})"

    def _unary(self, t: Num, scope: Scope, depth: int) -> str:
        return f"({self.rng.choice('-~')}{self.number(t, scope, depth - 1)})"

    def _mux(self, t: Num, scope: Scope, depth: int) -> str:
        cond = self.truth(scope, depth - 1)
        return f"({cond} ? {self.number(t, scope, depth - 1)} : {self.number(t, scope, depth - 1)})"

    def _converted(self, t: Num, scope: Scope, depth: int) -> str:
        if t == Num(1) and self.rng.random() < 0.4:
            return f"((bit<1>)({self.truth(scope, depth - 1)}))"
        source = random_num(self.rng, self.options)
        return self.cast(self.number(source, scope, depth - 1), source, t)

    def _slice(self, t: Num, scope: Scope, depth: int) -> str:
        extra = self.rng.choice((0, 1, 3, 8, 13))
        low = self.rng.randint(0, extra)
        source = Num(min(t.width + extra, 2048), self.rng.random() < 0.2)
        if source.width != t.width + extra or source.width < 2:
            return self.leaf(t, scope)
        base = self.number(source, scope, depth - 1)
        text = f"(({base})[{low + t.width - 1}:{low}])"
        return f"((int<{t.width}>){text})" if t.signed else text

    def _concat(self, t: Num, scope: Scope, depth: int) -> str:
        if t.width < 2 or (t.signed and t.width < 4):
            return self.leaf(t, scope)
        left = self.rng.randint(2 if t.signed else 1, t.width - (2 if t.signed else 1))
        first = self.number(Num(left, t.signed), scope, depth - 1)
        return f"({first} ++ {self.number(Num(t.width - left, t.signed), scope, depth - 1)})"

    def _divided(self, t: Num, scope: Scope, depth: int) -> str:
        if t.signed or t.width < 2:
            return self._arithmetic(t, scope, depth)
        divisor = f"{t.width}w{1 << self.rng.randrange(t.width)}"  # all that p4c lets through
        return f"({self.number(t, scope, depth - 1)} {self.rng.choice('/%')} {divisor})"

    def _called(self, t: Num, scope: Scope, depth: int) -> str:
        found = [f for f in scope.functions if f.result == t and all(d == "in" for d, _ in f.params)]
        if not found:
            return self.leaf(t, scope)
        function = self.rng.choice(found)
        return f"{function.name}({', '.join(self.of(p, scope, min(1, depth - 1)) for _, p in function.params)})"

    # Truths -----------------------------------------------------------------------------------------------------------

    def truth(self, scope: Scope, depth: int) -> str:
        if depth <= 0:
            found = scope.of_type(BOOL)
            if found and self.rng.random() < 0.7:
                return self.read(self.rng.choice(found), scope, "false")
            if scope.headers and not scope.in_function and self.rng.random() < 0.5:
                return f"{self.rng.choice(scope.headers)[0]}.isValid()"
            return self.rng.choice(("true", "false"))
        dice = self.rng.random()
        if dice < 0.5:
            t = random_num(self.rng, self.options)
            operator = self.rng.choice(("==", "!=", "<", ">", "<=", ">="))
            return f"({self.number(t, scope, depth - 1)} {operator} {self.number(t, scope, depth - 1)})"
        if dice < 0.7:
            operator = self.rng.choice(("&&", "||"))
            return f"({self.truth(scope, depth - 1)} {operator} {self.truth(scope, depth - 1)})"
        if dice < 0.8:
            return f"(!{self.truth(scope, depth - 1)})"
        enums = [v for v in scope.visible() if isinstance(v.type, Named) and v.type.members]
        if dice < 0.88 and enums:
            variable = self.rng.choice(enums)
            t2 = variable.type
            text = self.read(variable, scope, self.default(t2))
            return f"({text} {self.rng.choice(('==', '!='))} {self.of(t2, scope, 0)})"
        if dice < 0.93:
            return f"((bool)({self.number(Num(1), scope, depth - 1)}))"
        return self.truth(scope, 0)
