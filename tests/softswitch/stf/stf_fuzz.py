"""Random STF tests for a program: entries that are likely to be hit, packets made of the values that it mentions.

`python tests/softswitch/stf/stf_fuzz.py PROGRAM.p4 ...` runs them on the embedded switch and on BMv2 and prints what
differs, with an STF file that shows it.
"""

from __future__ import annotations

import random
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from bmv2_stf import Bmv2Stf
from bmv2_switch import Bmv2Switch, compile_program

from catchment.softswitch.build import build
from catchment.softswitch.inprocess import Switch
from catchment.softswitch.stf.language import Packet, Statement, parse
from catchment.softswitch.stf.runner import play

PORTS = range(8)


def _kind(field: Any) -> str:
    names = field.DESCRIPTOR.fields_by_name["match_type"].enum_type.values_by_number
    return str(names[field.match_type].name)


def _value(rng: random.Random, width: int, words: list[int]) -> int:
    pick = rng.random()
    if pick < 0.5:
        value = rng.randrange(4)
    elif pick < 0.8 and words:
        value = rng.choice(words)
    else:
        value = rng.getrandbits(width)
    return value & ((1 << width) - 1)


def _key(rng: random.Random, field: Any, words: list[int]) -> str | None:
    width = field.bitwidth or 1
    value = _value(rng, width, words)
    kind = _kind(field)
    if kind == "EXACT":
        return f"{value:#x}"
    if kind == "RANGE":
        low, high = sorted((value, _value(rng, width, words)))
        return f"{low}..{high}"
    if rng.random() < 0.3:
        return None
    if kind == "LPM":
        length = rng.randint(1, width)
        return f"{value >> (width - length) << (width - length):#x}/{length}"
    if kind == "TERNARY" and rng.random() < 0.6:
        digits = (width + 3) // 4
        text = f"{value:0{digits}x}"
        return "0x" + "".join("*" if rng.random() < 0.4 else d for d in text)
    return f"{value:#x}"


def _call(rng: random.Random, action: Any, words: list[int]) -> str:
    arguments = []
    for param in action.params:
        width = param.bitwidth or 1
        value = rng.choice(PORTS) if width == 9 and rng.random() < 0.95 else _value(rng, width, words)
        arguments.append(f"{param.name}:{value:#x}")
    return f"{action.preamble.name}({', '.join(arguments)})"


def entries(rng: random.Random, p4info: Any, words: list[int]) -> list[str]:
    """`add` and `setdefault` statements."""
    actions = {a.preamble.id: a for a in p4info.actions}
    lines = []
    for table in p4info.tables:
        usable = [actions[r.id] for r in table.action_refs if r.scope != 2 and r.id in actions]
        defaults = [actions[r.id] for r in table.action_refs if r.scope != 1 and r.id in actions]
        if table.implementation_id or table.is_const_table:
            continue
        if defaults and not table.const_default_action_id and rng.random() < 0.4:
            lines.append(f"setdefault {table.preamble.name} {_call(rng, rng.choice(defaults), words)}")
        if table.has_initial_entries:
            continue  # mutable by the specification, and so here; in BMv2 such a table takes no entries
        seen: set[str] = set()
        for priority in range(rng.randint(0, 6) if table.match_fields and usable else 0):
            keys = [(f.name, _key(rng, f, words)) for f in table.match_fields]
            text = " ".join(f'"{name}":{value}' for name, value in keys if value is not None)
            if not text or text in seen:
                continue
            seen.add(text)
            ordered = any(_kind(f) in ("TERNARY", "RANGE", "OPTIONAL") for f in table.match_fields)
            number = f"{priority + 1} " if ordered else ""
            lines.append(f"add {table.preamble.name} {number}{text} {_call(rng, rng.choice(usable), words)}")
    return lines


def replication(rng: random.Random, source: str) -> list[str]:
    """Groups and sessions for the numbers that the program mentions."""
    lines = []
    nodes = 0
    if "mcast_grp" in source:
        for group in (1, 2, 3):
            lines.append(f"mc_mgrp_create {group}")
            for instance in range(rng.randint(1, 2)):
                ports = " ".join(map(str, rng.sample(PORTS, rng.randint(1, 3))))
                lines += [f"mc_node_create {instance + 1} {ports}", f"mc_node_associate {group} {nodes}"]
                nodes += 1
    if "clone" in source:
        sessions = {int(n, 0) for n in re.findall(r"E2E|I2E\s*,\s*(?:32w)?(\w+)\s*[,)]", source) if n.isdigit()}
        lines += [f"mirroring_add {s} {rng.choice(PORTS)}" for s in sorted(sessions | {1, 2, 3, 5}) if s]
    return lines


def frame(rng: random.Random, seeds: list[bytes], words: list[int]) -> bytes:
    """One that resembles those of `seeds`, or bytes sprinkled with the program's values."""
    if seeds and rng.random() < 0.8:
        data = bytearray(rng.choice(seeds))
    else:
        data = bytearray(rng.choice([0, 0, 1, 2, 3, rng.randrange(256)]) for _ in range(rng.randint(1, 120)))
    for _ in range(rng.choice([0, 1, 1, 2, 3, 8])):
        at = rng.randrange(len(data))
        how = rng.random()
        if how < 0.4:
            data[at] = rng.choice([0, 1, 2, 3, 4, 5, 0x45, 0xFF, rng.randrange(256)])
        elif how < 0.6:
            data[at] ^= 1 << rng.randrange(8)
        elif words:
            word = rng.choice(words)
            raw = word.to_bytes(max(1, (word.bit_length() + 7) // 8), "big")
            data[at : at + len(raw)] = raw
    if rng.random() < 0.15:
        data = data[: rng.randint(1, len(data))]
    if rng.random() < 0.1:
        data += rng.randbytes(rng.randint(1, 40))
    return bytes(data)


def make(rng: random.Random, program: Path, p4info: Any, example: Path | None = None, packets: int = 40) -> str:
    """The text of a random STF test; the statements and packets of `example` are its model."""
    source = program.read_text(errors="replace")
    found = re.findall(r"(?<![\w.])(?:\d+[ws])?(0x[0-9a-fA-F_]+|\d+)(?![\w.])", source)
    words = sorted({int(w.replace("_", ""), 0) for w in found if not re.fullmatch(r"0\d+", w)})
    words = [w for w in words if 0 < w < 1 << 64]
    lines: list[str] = []
    seeds: list[bytes] = []
    if example is not None:
        for statement, line in zip(parse(example.read_text(), str(example)), _lines(example), strict=True):
            if isinstance(statement.body, Packet):
                seeds.append(statement.body.data)
            elif not line.lower().startswith(("expect", "check_counter", "wait", "no_packet")):
                lines.append(line)
    if not lines or rng.random() < 0.3:
        lines = replication(rng, source) + entries(rng, p4info, words)
    for _ in range(packets):
        lines.append(f"packet {rng.choice(PORTS)} {frame(rng, [s for s in seeds if s], words).hex()}")
    return "\n".join(lines) + "\n"


def _lines(path: Path) -> list[str]:
    stripped = (line.partition("#")[0].strip() for line in path.read_text().splitlines())
    return [line for line in stripped if line]


class Comparison:
    """One program on both switches."""

    def __init__(self, program: Path, folder: Path) -> None:
        self.program = program
        self.folder = folder
        self.built = build(program)
        self.json_path = compile_program(program, folder)

    def differs(self, statements: list[Statement]) -> str:
        """What differs; empty if nothing does."""
        ours = play(Switch(self.built, seed=1), self.built.p4info, statements)
        switch = Bmv2Switch(self.json_path, self.folder)
        try:
            theirs = Bmv2Stf(switch, self.json_path).run(statements)
            alive = switch.alive
        finally:
            switch.close()
        if not alive:
            return f"BMv2 died ({switch.process.returncode})"
        shown = []
        for port in sorted({*ours, *theirs}):
            # BMv2 keeps the order of a port's frames, but what is resubmitted or recirculated goes round its queues.
            mine, other = ours.get(port, []), theirs.get(port, [])
            if sorted(mine) != sorted(other):
                shown += [f"  port {port} ours only {f.hex()}" for f in mine if f not in other][:4]
                shown += [f"  port {port} BMv2 only {f.hex()}" for f in other if f not in mine][:4]
                shown.append(f"  port {port} {len(mine)} frames, BMv2 {len(other)}")
        return "\n".join(shown)

    def reduced(self, text: str) -> tuple[str, str]:
        """The test with the first single packet that differs on fresh switches, and how; empty if none does.

        BMv2 packets have fields of earlier ones in their invalid headers, so that only a first packet tells.
        """
        lines = text.splitlines()
        setting = [line for line in lines if not line.startswith("packet")]
        for packet in (line for line in lines if line.startswith("packet")):
            alone = "\n".join([*setting, packet])
            shown = self.differs(parse(alone))
            if shown:
                return alone, shown
        return "", ""


def differences(program: Path, example: Path | None, seed: int, rounds: int = 3) -> list[str]:
    """Runs random tests on both switches; one text for each that differs."""
    rng = random.Random(f"{seed}:{program.name}")
    out = []
    with tempfile.TemporaryDirectory() as folder:
        comparison = Comparison(program, Path(folder))
        for number in range(rounds):
            text = make(rng, program, comparison.built.p4info, example if number % 3 != 2 else None)
            try:
                shown = comparison.differs(parse(text))
                if shown:
                    alone, how = comparison.reduced(text)
                    what = f"differs\n{how}\n{alone}" if how else f"differs, no packet alone does\n{shown}\n{text}"
                    out.append(f"{program}: round {number} {what}")
            except RuntimeError as error:
                out.append(f"{program}: round {number}: BMv2 refuses: {error}")
    return out


def main() -> int:
    """Prints every difference."""
    bad = 0
    for name in sys.argv[1:]:
        program = Path(name)
        example = program.with_suffix(".stf")
        for text in differences(program, example if example.exists() else None, seed=1):
            print(text)
            bad += 1
    return min(bad, 1)


if __name__ == "__main__":
    sys.exit(main())
