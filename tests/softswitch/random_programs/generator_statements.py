"""Random statements, as lines of text."""

from __future__ import annotations

import random
from collections.abc import Callable as Function

from generator_expressions import Expressions
from generator_scope import BOOL, Callable, Named, Num, Options, Scope, Type, Variable, random_num

Lines = list[str]


class Statements:
    """Writes blocks. Every variable is initialised; loops may have no end."""

    def __init__(self, rng: random.Random, options: Options) -> None:
        self.rng = rng
        self.options = options
        self.ex = Expressions(rng, options)
        self._names = 0

    def fresh(self, stem: str) -> str:
        self._names += 1
        return f"{stem}{self._names}"

    def random_type(self, scope: Scope) -> Type:
        named = [v.type for v in scope.visible() if isinstance(v.type, Named) and v.type.members]
        dice = self.rng.random()
        if dice < 0.15:
            return BOOL
        if dice < 0.25 and named:
            return self.rng.choice(named)
        return random_num(self.rng, self.options)

    def block(self, scope: Scope, depth: int, size: int | None = None) -> Lines:
        """The statements of a block, which may declare and shadow."""
        lines: Lines = []
        for _ in range(self.rng.randint(1, size or self.options.size)):
            lines += self.statement(scope, depth)
        return lines

    def nested(self, scope: Scope, depth: int) -> Lines:
        inner = scope.nested()
        lines = self.block(inner, depth - 1, max(1, self.options.size // 2))
        scope.valid &= inner.valid
        return ["    " + line for line in lines]

    def statement(self, scope: Scope, depth: int) -> Lines:
        makers: list[tuple[int, Function[[Scope, int], Lines]]] = [
            (8, self._assign),
            (3, self._declare),
            (2, self._slice),
        ]
        if depth > 0:
            makers += [(4, self._if), (1, self._braces), (1, self._switch_value)]
            if self.options.loops and not scope.in_action and not scope.in_loop and not scope.in_parser:
                makers.append((1, self._loop))
        if not scope.in_function:
            makers += [(3, self._header), (1, self._stack)]
            if scope.registers:
                makers.append((2, self._register))
            if scope.counters:
                makers.append((1, self._count))
            if not scope.in_parser:
                makers += [(1, self._hash)]
        makers.append((2, self._call_function))
        if scope.actions and not scope.in_loop:
            makers.append((2, self._call_action))
        if not scope.in_action and not scope.in_function and not scope.in_loop:
            if scope.tables:
                makers.append((4, self._apply))
            if scope.controls:
                makers.append((2, self._control))
        maker = self.rng.choices([m for _, m in makers], [w for w, _ in makers])[0]
        return maker(scope, depth)

    # Assignments ------------------------------------------------------------------------------------------------------

    def _assign(self, scope: Scope, depth: int) -> Lines:
        del depth
        targets = scope.visible(writable=True)
        if not targets:
            return self._declare(scope, 0)
        target = self.rng.choice(targets)
        return [f"{target.text} = {self.ex.of(target.type, scope)};"]

    def _declare(self, scope: Scope, depth: int) -> Lines:
        del depth
        t = self.random_type(scope)
        name = self.fresh("v")
        line = f"{t} {name} = {self.ex.of(t, scope)};"
        scope.variables.append(Variable(name, t))
        return [line]

    def _slice(self, scope: Scope, depth: int) -> Lines:
        targets = [v for v in scope.visible(writable=True) if isinstance(v.type, Num) and v.type.width > 1]
        if self.options.strict:  # p4c loses the sign on the way
            targets = [v for v in targets if isinstance(v.type, Num) and not v.type.signed]
        if not targets:
            return self._declare(scope, depth)
        target = self.rng.choice(targets)
        assert isinstance(target.type, Num)
        low = self.rng.randrange(min(target.type.width, 257) if self.options.strict else target.type.width)
        high = self.rng.randrange(low, target.type.width)
        return [f"{target.text}[{high}:{low}] = {self.ex.of(Num(high - low + 1), scope)};"]

    # Control flow -----------------------------------------------------------------------------------------------------

    def _if(self, scope: Scope, depth: int) -> Lines:
        if scope.headers and not scope.in_function and self.rng.random() < 0.3:
            header = self.rng.choice(scope.headers)[0]
            inner = scope.nested()
            inner.valid.add(header)
            return [f"if ({header}.isValid()) {{", *self._leaving(inner, depth), "}"]
        lines = [f"if ({self.ex.truth(scope, self.options.depth - 1)}) {{", *self._leaving(scope, depth)]
        if self.rng.random() < 0.5:
            lines += ["} else {", *self.nested(scope, depth)]
        return [*lines, "}"]

    def _leaving(self, scope: Scope, depth: int) -> Lines:
        """A block that now and then ends with exit or return."""
        inner = scope.nested()
        lines = ["    " + line for line in self.block(inner, depth - 1, max(1, self.options.size // 2))]
        scope.valid &= inner.valid
        if scope.in_parser or scope.in_loop:
            return lines
        if self.rng.random() < 0.12:
            if scope.returns is not None:
                lines.append(f"    return {self.ex.of(scope.returns, inner)};")
            elif scope.in_function or self.rng.random() < 0.6:
                lines.append("    return;")
            else:
                lines.append("    exit;")
        return lines

    def _braces(self, scope: Scope, depth: int) -> Lines:
        names = [v for v in scope.visible() if v.text.isidentifier() and v.text.startswith("v")]
        inner = scope.nested()
        lines = []
        if names and not scope.in_parser:
            hidden = self.rng.choice(names)
            t = self.random_type(scope)
            without = scope.nested()
            without.variables = [v for v in without.variables if v.text != hidden.text]
            lines.append(f"    {t} {hidden.text} = {self.ex.of(t, without)};")
            inner.variables.append(Variable(hidden.text, t))
        lines += ["    " + line for line in self.block(inner, depth - 1, max(1, self.options.size // 2))]
        scope.valid &= inner.valid
        return ["{", *lines, "}"]

    def _switch_value(self, scope: Scope, depth: int) -> Lines:
        if scope.in_action or scope.in_parser or scope.in_function:
            return self._assign(scope, depth)
        t = Num(self.rng.choice((2, 3, 8)))
        values = self.rng.sample(range(1 << t.width), min(3, 1 << t.width))
        lines = [f"switch ({self.ex.number(t, scope, 1)}) {{"]
        for value in values[:2]:
            lines += [f"    {t.width}w{value}: {{", *("    " + line for line in self.nested(scope, depth)), "    }"]
        lines += [f"    {t.width}w{values[2]}:", "    default: {"]
        return [*lines, *("    " + line for line in self.nested(scope, depth)), "    }", "}"]

    def _loop(self, scope: Scope, depth: int) -> Lines:
        name = self.fresh("i")
        t = Num(self.rng.choice((4, 8, 16)))
        inner = scope.nested()
        inner.in_loop = True
        inner.variables.append(Variable(name, t, writable=False))
        body = ["    " + line for line in self.block(inner, depth - 1, 2)]
        scope.valid &= inner.valid
        low, count = self.rng.randrange(4), self.rng.randrange(4)
        if not self.options.strict and self.rng.random() < 0.3:  # as long as the packet says, perhaps without an end
            bound = self.ex.number(t, scope, 1)
            if self.rng.random() < 0.5:
                return [f"for ({t} {name} in {t.width}w{low} .. {bound}) {{", *body, "}"]
            return [f"for ({t} {name} = {low}; {name} <= {bound}; {name} = {name} + 1) {{", *body, "}"]
        if not self.options.strict and self.rng.random() < 0.5:
            head = f"for ({t} {name} in {t.width}w{low} .. {t.width}w{low + count}) {{"
        else:
            head = f"for ({t} {name} = {low}; {name} < {low + count}; {name} = {name} + 1) {{"
        return [head, *body, "}"]

    # Headers ----------------------------------------------------------------------------------------------------------

    def _header(self, scope: Scope, depth: int) -> Lines:
        if not scope.headers or scope.in_parser:
            return self._assign(scope, depth)
        name, t = self.rng.choice(scope.headers)
        dice = self.rng.random()
        same = [n for n, other in scope.headers if other == t and n != name]
        if dice < 0.35:
            fields = [f"{name}.{f} = {self.ex.of(ft, self._without(scope, name))};" for f, ft in t.fields]
            scope.valid.add(name)
            return [f"{name}.setValid();", *fields]
        if dice < 0.5:
            scope.valid.discard(name)
            return [f"{name}.setInvalid();"]
        if dice < 0.75 and same:
            other = self.rng.choice(same)
            scope.valid.discard(name)
            return [f"{name} = {other};"]
        values = [self.ex.of(ft, self._without(scope, name), 1) for _, ft in t.fields]
        scope.valid.add(name)
        return [f"{name} = {{{', '.join(values)}}};"]

    @staticmethod
    def _without(scope: Scope, header: str) -> Scope:
        """What can be read while `header` is being made: p4c writes its fields one after the other."""
        inner = scope.nested()
        inner.variables = [v for v in scope.visible() if v.header != header]
        return inner

    def _stack(self, scope: Scope, depth: int) -> Lines:
        if not scope.stacks or scope.in_parser:
            return self._assign(scope, depth)
        name, t, size = self.rng.choice(scope.stacks)
        dice = self.rng.random()
        if dice < 0.25:
            return [f"{name}.{self.rng.choice(('push_front', 'pop_front'))}({self.rng.randint(1, size)});"]
        index = str(self.rng.randrange(size))
        if dice < 0.4:
            return [f"{name}[{index}].setInvalid();"]
        element = f"{name}[{index}]"
        fields = [f"{element}.{f} = {self.ex.of(ft, scope, 2)};" for f, ft in t.fields]
        return [f"{element}.setValid();", *fields]

    # Calls ------------------------------------------------------------------------------------------------------------

    def arguments(self, callee: Callable, scope: Scope) -> list[str] | None:
        """Arguments for the parameters; two outputs never share a variable. None: no variable fits."""
        out: list[str] = []
        taken: set[str] = set()
        for direction, t in callee.params:
            if direction == "in":
                out.append(self.ex.of(t, scope, 1))
                continue
            fitting = [v for v in scope.of_type(t, writable=True) if v.text not in taken]
            fitting = [v for v in fitting if not v.header or v.header in scope.valid]
            if not fitting:
                return None
            chosen = self.rng.choice(fitting)
            taken.add(chosen.text)
            out.append(chosen.text)
        return out

    def _outs(self, callee: Callable, scope: Scope) -> Lines:
        """Variables for the outputs of a call, declared right before it."""
        lines = []
        for direction, t in callee.params:
            if direction != "in" and self.rng.random() < 0.8:
                name = self.fresh("v")
                lines.append(f"{t} {name} = {self.ex.of(t, scope, 1)};")
                scope.variables.append(Variable(name, t))
        return lines

    def _call_function(self, scope: Scope, depth: int) -> Lines:
        if not scope.functions:
            return self._assign(scope, depth)
        function = self.rng.choice(scope.functions)
        lines = self._outs(function, scope)
        arguments = self.arguments(function, scope)
        if arguments is None:
            return [*lines, *self._assign(scope, depth)]
        call = f"{function.name}({', '.join(arguments)})"
        if function.result is None:
            return [*lines, f"{call};"]
        name = self.fresh("v")
        scope.variables.append(Variable(name, function.result))
        return [*lines, f"{function.result} {name} = {call};"]

    def _call_action(self, scope: Scope, depth: int) -> Lines:
        action = self.rng.choice(scope.actions)
        lines = self._outs(action, scope)
        arguments = self.arguments(action, scope)
        if arguments is None:
            return [*lines, *self._assign(scope, depth)]
        scope.valid.clear()
        return [*lines, f"{action.name}({', '.join(arguments)});"]

    def _control(self, scope: Scope, depth: int) -> Lines:
        control = self.rng.choice(scope.controls)
        lines = self._outs(control, scope)
        arguments = self.arguments(control, scope)
        if arguments is None:
            return [*lines, *self._assign(scope, depth)]
        scope.controls.remove(control)
        scope.valid.clear()
        return [*lines, f"{control.name}.apply(hdr, meta{''.join(', ' + a for a in arguments)});"]

    def _apply(self, scope: Scope, depth: int) -> Lines:
        table, actions = scope.tables.pop(self.rng.randrange(len(scope.tables)))
        scope.valid.clear()
        dice = self.rng.random()
        if dice < 0.3 or depth <= 0:
            return [f"{table}.apply();"]
        if dice < 0.6:
            word = self.rng.choice(("hit", "miss"))
            lines = [f"if ({table}.apply().{word}) {{", *self.nested(scope, depth)]
            return [*lines, "} else {", *self.nested(scope, depth), "}"]
        lines = [f"switch ({table}.apply().action_run) {{"]
        for action in actions[:2]:
            lines += [f"    {action}: {{", *("    " + line for line in self.nested(scope, depth)), "    }"]
        if self.rng.random() < 0.6:
            lines += ["    default: {", *("    " + line for line in self.nested(scope, depth)), "    }"]
        return [*lines, "}"]

    # State ------------------------------------------------------------------------------------------------------------

    def _register(self, scope: Scope, depth: int) -> Lines:
        del depth
        name, t, size = self.rng.choice(scope.registers)
        index = self.ex.number(Num(32), scope, 1)
        if self.options.strict or self.rng.random() < 0.8:  # outside, a BMv2 without assertions crashes
            index = f"({index}) % {size}"
        if self.rng.random() < 0.5:
            return [f"{name}.write({index}, {self.ex.of(t, scope)});"]
        variable = self.fresh("v")
        scope.variables.append(Variable(variable, t))
        return [f"{t} {variable} = {self.ex.default(t)};", f"{name}.read({variable}, {index});"]

    def _count(self, scope: Scope, depth: int) -> Lines:
        del depth
        name, size = self.rng.choice(scope.counters)
        return [f"{name}.count(({self.ex.number(Num(32), scope, 1)}) % {size});"]

    def _hash(self, scope: Scope, depth: int) -> Lines:
        del depth
        algorithm = self.rng.choice(("crc32", "crc16", "csum16", "identity", "xor16"))
        result = Num(self.rng.choice((8, 16, 32, 40)))
        parts = [Num(self.rng.choice((8, 16, 24, 32, 64, 128))) for _ in range(self.rng.randint(1, 4))]
        data = ", ".join(self.ex.of(p, scope, 1) for p in parts)
        most = Num(32)
        base = f"{result.width}w{self.rng.randrange(200)}"
        limit = f"{most.width}w{self.rng.choice((1, 7, 256, 65536, 0xFFFFFFFF))}"
        name = self.fresh("v")
        scope.variables.append(Variable(name, result))
        call = f"hash({name}, HashAlgorithm.{algorithm}, {base}, {{{data}}}, {limit});"
        return [f"{result} {name} = 0;", call]
