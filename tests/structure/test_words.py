"""One word for one concept: what docs/reference/glossary.md retired is in no source, and docstrings stand alone."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from floors import tracked

from catchment.checkout import ROOT

GLOSSARY = ROOT / "docs" / "reference" / "glossary.md"
_ROW = re.compile(r"^\| ([^|]+) \| ([^|]+) \|([^|]*)\|$", re.MULTILINE)
PREPOSITIONS = {
    "above", "across", "after", "against", "along", "among", "around", "as", "at", "because", "before", "behind",
    "below", "beneath", "beside", "between", "beyond", "by", "despite", "during", "except", "for", "from", "if", "in",
    "inside", "into", "near", "of", "off", "on", "once", "onto", "out", "outside", "over", "per", "since", "through",
    "throughout", "to", "toward", "towards", "under", "unless", "until", "up", "upon", "via", "when", "whereas",
    "where", "while", "with", "within", "without",
}  # fmt: skip
"""Words that leave a sentence without a subject where it begins with them."""
_DOCUMENTED = re.compile(r"^[ \t]*///[ \t]*(\w*).*", re.MULTILINE)


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


def _statements(node: ast.AST) -> list[ast.stmt]:
    body = getattr(node, "body", None)
    return body if isinstance(body, list) else []


def docstrings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and text of each docstring: of modules, classes and functions, and below what is assigned."""
    for node in ast.walk(tree):
        before: ast.stmt | None = None
        for statement in _statements(node):
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                text = statement.value.value
                if isinstance(text, str) and (before is None or isinstance(before, ast.Assign | ast.AnnAssign)):
                    yield statement.lineno, text
            before = statement


def badly_begun(source: str) -> list[tuple[int, str]]:
    """The docstrings of a module that begin with a preposition: line and first line."""
    return [
        (line, text.splitlines()[0])
        for line, text in docstrings(ast.parse(source))
        if text and re.split(r"\W", text, maxsplit=1)[0].lower() in PREPOSITIONS
    ]


def badly_begun_in_cpp(source: str) -> list[tuple[int, str]]:
    """The comments (`///`) of a C++ file whose first line begins with a preposition: line and text."""
    found = []
    end = -2
    for match in _DOCUMENTED.finditer(source):
        begins, end = match.start() != end + 1, match.end()
        if begins and match[1].lower() in PREPOSITIONS:
            found.append((source.count("\n", 0, match.start()) + 1, match[0].strip()))
    return found


def test_documented_comments_begin_with_a_verb_or_a_noun() -> None:
    found = [
        f"{name}:{line}: {text}"
        for name in tracked("*.hpp", "*.h", "*.cpp")
        if not name.startswith(("wire/generated/", "rtl/generated/"))
        for line, text in badly_begun_in_cpp((ROOT / name).read_text("utf-8"))
    ]
    assert not found, "begin these with a verb or a noun:\n" + "\n".join(found)


def test_a_documented_comment_without_a_subject_is_found() -> None:
    source = "/// Of all.\nint a;\n  /// Good,\n  /// (so)\n  /// of these.\nint b;\n/// Outside: zero.\nint c;\n"
    assert [line for line, _ in badly_begun_in_cpp(source)] == [1, 7]


def test_docstrings_begin_with_a_verb_or_a_noun() -> None:
    found = [
        f"{name}:{line}: {text}"
        for name in tracked("*.py")
        if not name.startswith("wire/generated/")
        for line, text in badly_begun((ROOT / name).read_text("utf-8"))
    ]
    assert not found, "begin these with a verb or a noun:\n" + "\n".join(found)


def test_a_docstring_without_a_subject_is_found() -> None:
    source = '"""Of all."""\nA = 1\n"""In hops."""\nclass B:\n    """Good."""\n    c = 2\n    """By name."""\n'
    assert [line for line, _ in badly_begun(source)] == [1, 3, 7]
