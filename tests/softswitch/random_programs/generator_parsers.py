"""Random header types, parsers and checksums."""

from __future__ import annotations

import random

from generator_scope import BOOL, Named, Num, Options, Scope, Type, Variable, random_num
from generator_statements import Lines
from generator_tables import Tables

ERRORS = ("Odd", "TooBig")


class Parsers(Tables):
    """Writes the program's types and its parser."""

    def __init__(self, rng: random.Random, options: Options) -> None:
        super().__init__(rng, options)
        self.functions = []
        self.sub: str | None = None

    def _fields(self, count: int, *, whole: bool) -> tuple[tuple[str, Type], ...]:
        """Random fields; `whole`: padded to whole bytes."""
        fields: list[tuple[str, Type]] = []
        bits = 0
        for i in range(count):
            t = random_num(self.rng, self.options)
            fields.append((f"f{i}", t))
            bits += t.width
        if whole and bits % 8:
            fields.append(("pad", Num(8 - bits % 8)))
        return tuple(fields)

    def make_types(self) -> None:
        rng = self.rng
        self.enum = Named("Colour", ("red", "green", "blue"))
        self.ser_enum = Named("Kind", ("one", "two", "many"), Num(8))
        self.first = Named("first_h", fields=(("kind", Num(8)), ("count", Num(8)), ("size", Num(8)), ("any", Num(16))))
        self.plain = [
            Named(f"plain{i}_h", fields=self._fields(rng.randint(1, 5), whole=True)) for i in range(rng.randint(1, 2))
        ]
        self.item = Named("item_h", fields=(("last", Num(8)), *self._fields(rng.randint(0, 2), whole=True)))
        self.variant = [Named(f"variant{i}_h", fields=self._fields(rng.randint(1, 3), whole=True)) for i in range(2)]
        self.stack_size = rng.choice((2, 3, 4))
        self.with_union = rng.random() < 0.5
        self.with_varbit = rng.random() < 0.5
        self.inner = Named("inner_t", fields=tuple((n, t) for n, t in self._fields(2, whole=False)))
        self.meta = tuple((f"m{i}", random_num(rng, self.options)) for i in range(rng.randint(2, 5)))
        self.seen_i, self.seen_e = self._seen(), self._seen()
        self.plain_headers = [(f"hdr.h{i}", t) for i, t in enumerate(rng.choices(self.plain, k=3))]

    def _seen(self) -> list[tuple[str, Num]]:
        fields: list[tuple[str, Num]] = []
        bits = 0
        for i in range(8):
            t = random_num(self.rng, self.options)
            if bits + t.width <= 1000:
                fields.append((f"s{i}", t))
                bits += t.width
        return fields

    def type_lines(self) -> Lines:
        lines = [f"error {{ {', '.join(ERRORS)} }}", f"enum Colour {{ {', '.join(self.enum.members)} }}"]
        values = ", ".join(f"{m} = {v}" for m, v in zip(self.ser_enum.members, (1, 2, 200), strict=True))
        lines.append(f"enum bit<8> Kind {{ {values} }}")
        for t in (self.first, *self.plain, self.item, *self.variant):
            lines += [f"header {t.name} {{ {' '.join(f'{ft} {f};' for f, ft in t.fields)} }}"]
        lines.append("header options_h { varbit<320> data; }")
        lines.append("header_union choice_u { variant0_h v0; variant1_h v1; }")
        for name, seen in (("seen_i_h", self.seen_i), ("seen_e_h", self.seen_e)):
            bits = sum(t.width for _, t in seen)
            pad = f"bit<{-bits % 8}> pad; " if bits % 8 else ""
            lines.append(f"header {name} {{ {' '.join(f'{t} {f};' for f, t in seen)} {pad}}}")
        lines += ["struct headers_t {", "    first_h first;"]
        lines += [f"    {t.name} {name.removeprefix('hdr.')};" for name, t in self.plain_headers]
        lines.append(f"    item_h[{self.stack_size}] items;")
        if self.with_union:
            lines.append("    choice_u choice;")
        if self.with_varbit:
            lines.append("    options_h options;")
        lines += ["    seen_i_h seen_i;", "    seen_e_h seen_e;", "}"]
        lines.append(f"struct inner_t {{ {' '.join(f'{t} {n};' for n, t in self.inner.fields)} }}")
        lines += ["struct meta_t {", *(f"    {t} {n};" for n, t in self.meta)]
        return [*lines, "    bool flag;", "    Colour colour;", "    inner_t inner;", "}"]

    def control_scope(self, *, with_standard: bool) -> Scope:
        """What a control sees of headers and metadata."""
        scope = Scope(functions=self.functions)
        scope.variables += [Variable(f"meta.{n}", t) for n, t in self.meta]
        scope.variables += [Variable("meta.flag", BOOL), Variable("meta.colour", self.enum)]
        scope.variables += [Variable(f"meta.inner.{n}", t) for n, t in self.inner.fields]
        scope.headers = [("hdr.first", self.first), *self.plain_headers]
        for name, t in scope.headers:
            scope.variables += [Variable(f"{name}.{f}", ft, header=name) for f, ft in t.fields]
        scope.stacks = [("hdr.items", self.item, self.stack_size)]
        for i in range(self.stack_size):
            element = f"hdr.items[{i}]"
            scope.variables += [Variable(f"{element}.{f}", ft, header=element) for f, ft in self.item.fields]
        if self.with_union:
            for i, t in enumerate(self.variant):
                member = f"hdr.choice.v{i}"
                scope.variables += [Variable(f"{member}.{f}", ft, False, member) for f, ft in t.fields]
        if with_standard:
            scope.variables += [Variable("sm.ingress_port", Num(9), False)]
            if not self.options.strict:  # BMv2's grows and shrinks with the headers that are made valid
                scope.variables += [Variable("sm.packet_length", Num(32), False)]
            scope.variables += [Variable("sm.checksum_error", Num(1), False)]
        return scope

    # The parser -------------------------------------------------------------------------------------------------------

    def sub_parser(self) -> Lines:
        """A parser of one header, to be called from the main one."""
        name, t = self.plain_headers[2]
        self.sub = name
        scope = Scope(functions=self.functions, in_parser=True, valid={"h"})
        scope.variables = [Variable(f"h.{f}", ft) for f, ft in t.fields]
        scope.variables.append(Variable("meta.flag", BOOL))
        body = [line for _ in range(2) for line in self._assign(scope, 0)]
        cond = self.ex.truth(scope, 2)
        return [
            f"parser Inner(packet_in packet, out {t.name} h, inout meta_t meta) {{",
            "    state start {",
            "        packet.extract(h);",
            *("        " + line for line in body),
            f"        verify({cond} || h.{t.fields[0][0]} != {self.ex.literal(t.fields[0][1])}, error.TooBig);",  # type: ignore[arg-type]
            "        transition accept;",
            "    }",
            "}",
        ]

    def parser(self) -> Lines:
        """first_h, then whatever its fields ask for."""
        rng = self.rng
        scope = self.control_scope(with_standard=False)
        scope.in_parser = True
        scope.headers, scope.stacks = [], []
        scope.variables = [v for v in scope.variables if not v.header or v.header == "hdr.first"]
        scope.valid = {"hdr.first"}
        lines = ["parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {"]
        if self.sub:
            lines.append("    Inner() inner;")
        mask = rng.choice(("3", "7"))
        lines += ["    state start {", "        packet.extract(hdr.first);", *self._body(scope)]
        lines += [f"        transition select(hdr.first.kind & {mask}, hdr.first.any[{rng.randrange(8)}:0]) {{"]
        lines += ["            (0, _): plain;", "            (1, _): stack;"]
        lines.append("            (2, _): options;" if self.with_varbit else "            (2, 0 .. 1): plain;")
        lines.append("            (3, _): choose;" if self.with_union else "            (3, 1 &&& 1): accept;")
        lines += ["            (4, _): look;", f"            (5, {rng.randrange(2)}): reject_late;"]
        if rng.random() < 0.8:
            lines.append("            default: accept;")
        lines += ["        }", "    }"]
        lines += self._state_lines(
            "plain", [f"packet.extract({self.plain_headers[0][0]});", *self._more(scope)], "maybe"
        )
        lines += self._maybe()
        stop = f"(hdr.items.last.last & {rng.choice((1, 3))}) == 0"
        lines += ["    state stack {", "        packet.extract(hdr.items.next);"]
        lines += [f"        transition select({stop}) {{", "            true: maybe;", "            false: stack;"]
        lines += ["        }", "    }"]
        if self.with_varbit:
            size = rng.choice(("(bit<32>)(hdr.first.size & 63) * 8", "(bit<32>)hdr.first.size"))
            lines += self._state_lines("options", [f"packet.extract(hdr.options, {size});"], "accept")
        if self.with_union:
            lines += ["    state choose {", "        transition select(hdr.first.count) {"]
            lines += ["            0 .. 99: choose0;", "            default: choose1;", "        }", "    }"]
            for i in range(2):
                lines += self._state_lines(f"choose{i}", [f"packet.extract(hdr.choice.v{i});"], "maybe")
        t = Num(rng.choice((8, 12, 16, 24, 33)))
        lines += ["    state look {", f"        {t} ahead = packet.lookahead<{t}>();"]
        lines += [
            f"        packet.advance({rng.choice(('8', '16', '(bit<32>)hdr.first.count << 3', '(bit<32>)ahead'))});"
        ]
        inner = scope.nested()
        inner.variables.append(Variable("ahead", t))
        lines += self._body(inner)
        lines += ["        transition select(ahead, meta.flag) {"]  # p4c's own output for a constant does not load
        lines += [
            "            (0, _): plain;",
            f"            ({rng.randrange(1 << t.width)} &&& {rng.randrange(1 << t.width)}, true): maybe;",
        ]
        lines += ["            default: accept;", "        }", "    }"]
        lines += self._state_lines("reject_late", ["verify(hdr.first.count < 100, error.Odd);"], "accept")
        return [*lines, "}"]

    def _state_lines(self, name: str, body: Lines, then: str) -> Lines:
        return [f"    state {name} {{", *("        " + line for line in body), f"        transition {then};", "    }"]

    def _maybe(self) -> Lines:
        name, _ = self.plain_headers[1]
        lines = ["    state maybe {", "        transition select(hdr.first.count[3:0]) {", "            1: one_more;"]
        if self.sub:
            lines.append("            2 .. 5: nested;")
        lines += ["            default: accept;", "        }", "    }"]
        lines += self._state_lines("one_more", [f"packet.extract({name});"], "accept")
        if self.sub:
            lines += self._state_lines("nested", [f"inner.apply(packet, {self.sub}, meta);"], "accept")
        return lines

    def _body(self, scope: Scope) -> Lines:
        lines: Lines = []
        for _ in range(self.rng.randint(0, 2)):
            lines += self._assign(scope, 0)
        return ["        " + line for line in lines]

    def _more(self, scope: Scope) -> Lines:
        return self._assign(scope, 0) if self.rng.random() < 0.5 else []

    # Checksums --------------------------------------------------------------------------------------------------------

    def checksum_control(self, name: str, *, verify: bool) -> Lines:
        """csum16 over some fields, against or into one of 16 bits."""
        lines = [f"control {name}(inout headers_t hdr, inout meta_t meta) {{", "    apply {"]
        fields = ["hdr.first.kind", "hdr.first.count"]
        header, t = self.plain_headers[0]
        if sum(ft.width for _, ft in t.fields if isinstance(ft, Num)) % 8 == 0:
            fields += [f"{header}.{f}" for f, _ in t.fields]
        call = "verify_checksum" if verify else "update_checksum"
        if self.rng.random() < 0.3:
            call += "_with_payload"
        condition = self.rng.choice(("true", "hdr.first.isValid()", "hdr.first.isValid() && hdr.first.size > 9"))
        if self.rng.random() < 0.7:
            data = ", ".join(fields)
            lines.append(f"        {call}({condition}, {{ {data} }}, hdr.first.any, HashAlgorithm.csum16);")
        return [*lines, "    }", "}"]
