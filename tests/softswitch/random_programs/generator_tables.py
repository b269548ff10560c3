"""Random tables with the entries that they bring with them."""

from __future__ import annotations

from generator_scope import BOOL, Callable, Named, Num, Scope, Type
from generator_statements import Lines, Statements

KINDS = ("exact", "exact", "lpm", "ternary", "range", "optional")


class Tables(Statements):
    """Writes table declarations."""

    def keys(self, scope: Scope) -> list[tuple[str, Num, str]]:
        """(expression, type, match kind); at most one lpm."""
        out: list[tuple[str, Num, str]] = []
        for _ in range(self.rng.choice((1, 1, 2, 3))):
            kind = self.rng.choice(KINDS)
            if kind == "lpm" and any(k == "lpm" for _, _, k in out):
                kind = "exact"
            widths = (1, 3, 8, 16, 33, 64, 100, 128) if kind not in ("range", "lpm") else (2, 8, 16, 33, 64)
            if kind == "range" and self.options.strict:
                widths = (2, 8, 16, 31)  # p4c writes `_` of a wider one as a range of nearly nothing
            if kind == "lpm" and self.options.strict:
                widths = (8, 16, 32, 64)  # BMv2 counts the prefix of a const entry from the top of its first byte
            t = Num(self.rng.choice(widths))
            # p4c copies an element's field before it looks it up: of an invalid one BMv2 has some earlier packet's.
            plain = [v for v in scope.of_type(t) if v.header and "[" not in v.text]
            text = self.rng.choice(plain).text if plain and self.rng.random() < 0.5 else self.ex.number(t, scope, 1)
            out.append((text, t, kind))
        return out

    def match(self, t: Num, kind: str) -> str:
        """One component of an entry."""
        top = (1 << t.width) - 1
        value = self.rng.choice((0, 1, top, self.rng.randint(0, top), self.rng.randint(0, min(top, 3))))
        value = min(value, top)
        if kind == "exact":
            return f"{value}"
        dice = self.rng.random()
        if dice < 0.25:
            return "_"
        if kind == "optional" or (kind != "lpm" and dice < 0.4):
            return f"{value}"
        if kind == "lpm":
            length = self.rng.randint(0, t.width)
            mask = top & ~((1 << (t.width - length)) - 1)
            return f"{value & mask:#x} &&& {mask:#x}" if length else "_"
        if kind == "ternary":
            mask = self.rng.choice((self.rng.randint(0, top), 1, top))
            return f"{value & mask:#x} &&& {mask:#x}"
        other = self.rng.randint(0, top)
        return f"{min(value, other)} .. {max(value, other)}"

    def table(self, name: str, scope: Scope, actions: list[Callable], counter: str = "") -> Lines:
        """A table over what `scope` sees; `actions` take data only."""
        keys = self.keys(scope) if self.rng.random() < 0.93 else []
        chosen = self.rng.sample(actions, min(len(actions), self.rng.randint(1, 3)))
        lines = [f"table {name} {{"]
        if keys:
            parts = [f'        {text} : {kind} @name("k{i}");' for i, (text, _, kind) in enumerate(keys)]
            lines += ["    key = {", *parts, "    }"]
        bound = {a.name: [self.ex.of(t, scope, 1) for d, t in a.params if d == "in"] for a in chosen}
        listed = [f"{a.name}({', '.join(bound[a.name])});" if bound[a.name] else f"{a.name};" for a in chosen]
        lines.append(f"    actions = {{ {' '.join(listed)} NoAction; }}")
        default = self.rng.choice([*chosen, None])
        const = "const " if self.rng.random() < 0.3 else ""
        lines.append(f"    {const}default_action = {self._call(default, bound)};")
        if keys and self.rng.random() < 0.85:
            seen: set[str] = set()
            entries = []
            for _ in range(self.rng.randint(1, 6)):
                matches = ", ".join(self.match(t, kind) for _, t, kind in keys)
                if matches in seen:
                    continue
                seen.add(matches)
                key = f"({matches})" if len(keys) > 1 else matches
                entries.append(f"        {key} : {self._call(self.rng.choice(chosen), bound)};")
            lines += ["    const entries = {", *entries, "    }"]
        if counter:
            lines.append(f"    counters = {counter};")
        if self.rng.random() < 0.3:
            lines.append("    size = 64;")
        self.table_actions = [a.name for a in chosen]
        return [*lines, "}"]

    def _call(self, action: Callable | None, bound: dict[str, list[str]]) -> str:
        """The arguments of the action list are repeated; data are constants."""
        if action is None:
            return "NoAction()"
        data = [self.constant(t) for d, t in action.params if d == ""]
        return f"{action.name}({', '.join([*bound[action.name], *data])})"

    def constant(self, t: Type) -> str:
        """A literal for an action's data."""
        if isinstance(t, Num):
            return self.ex.literal(t)
        if t == BOOL:
            return self.rng.choice(("true", "false"))
        assert isinstance(t, Named)
        return f"{t.name}.{self.rng.choice(t.members)}"
