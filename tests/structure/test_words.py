"""One word for one concept: what docs/glossary.md retired is not in the sources, and docstrings stand alone."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from floors import tracked

from catchment.checkout import ROOT

GLOSSARY = ROOT / "docs" / "glossary.md"
_ROW = re.compile(r"^\| ([^|]+) \| ([^|]+) \|([^|]*)\|$", re.MULTILINE)
PREPOSITIONS = {
    "after", "as", "at", "before", "behind", "beside", "between", "by", "for", "from", "in", "into", "of", "on", "over",
    "through", "to", "under", "until", "when", "where", "while", "with", "without",
}  # fmt: skip


def glossary() -> dict[str, list[str]]:
    """Word -> the words that it replaced."""
    rows = [row for row in _ROW.findall(GLOSSARY.read_text("utf-8")) if row[0] != "word" and set(row[0]) != {"-"}]
    return {word.strip(): re.findall(r"`([^`]+)`", retired) for word, _, retired in rows}


def test_retired_words_are_gone() -> None:
    retired = {old: word for word, olds in glossary().items() for old in olds}
    assert retired, "the glossary retires nothing"
    pattern = re.compile(rf"(?<![A-Za-z])(?:{'|'.join(map(re.escape, retired))})(?![a-z])")
    found = [
        f"{name}:{number}: {match[0]} (say {retired[match[0]]})"
        for name in tracked("*.py", "*.cpp", "*.hpp", "*.h", "*.sv", "*.p4")
        for number, line in enumerate((ROOT / name).read_text("utf-8").splitlines(), 1)
        for match in pattern.finditer(line)
    ]
    assert not found, "\n".join(found)


def test_every_word_is_explained_once() -> None:
    words = [row[0].strip() for row in _ROW.findall(GLOSSARY.read_text("utf-8")) if row[0].strip() != "word"]
    words = [word for word in words if set(word) != {"-"}]
    assert len(words) == len(set(words)) >= 40


def test_docstrings_begin_with_who_or_what() -> None:
    found = []
    for name in tracked("*.py"):
        if name.startswith(("tests/", "wire/generated/")):
            continue
        for node in ast.walk(ast.parse((ROOT / name).read_text("utf-8"))):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
                continue
            text = ast.get_docstring(node) or ""
            if re.split(r"\W", text, maxsplit=1)[0].lower() in PREPOSITIONS:
                found.append(f"{name}:{getattr(node, 'lineno', 1)}: {text.splitlines()[0]}")
    assert not found, "begin these with a verb or a noun:\n" + "\n".join(found)
