"""Real samples for bench/glm.py: scikit-learn's bundled sets, and TF-IDF of texts that this machine has."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.feature_extraction.text import TfidfVectorizer

from catchment.host.glm import GlmError, Samples

_FEWEST = 2000
"""Texts from which a collection is worth training on."""
_LIBRARIES = {"libs", "libdevel", "oldlibs"}
_SHORTEST = 40
"""Characters of a docstring."""


@dataclass(frozen=True, slots=True)
class NamedSamples:
    """Samples and what they are."""

    name: str
    samples: Samples
    about: str


def bundled() -> list[NamedSamples]:
    """Two of scikit-learn's own sets, both with two classes."""
    cancer, digits = load_breast_cancer(), load_digits()
    return [
        NamedSamples("breast cancer", Samples.of(cancer.data, cancer.target), "scikit-learn's load_breast_cancer"),
        NamedSamples(
            "digits",
            Samples.of(digits.data, (digits.target >= 5).astype(float)),
            "scikit-learn's load_digits, 0-4 or 5-9",
        ),
    ]


def text_set() -> NamedSamples:
    """A large sparse set of what this machine has: descriptions of packages, else docstrings of Python packages.

    Raises:
        GlmError: neither is there; says what was looked for.
    """
    for found in (_package_descriptions(), _docstrings()):
        if found is not None:
            return found
    raise GlmError(
        "no texts on this machine: no package lists (apt-cache dumpavail, /var/lib/dpkg/status), no docstrings",
        "run `apt-get update`, or install scikit-learn and scipy with their sources",
    )


def _package_descriptions() -> NamedSamples | None:
    texts, labels = [], []
    for record in _records():
        section = record.get("Section", "").rpartition("/")[2]
        text = record.get("Description", record.get("Description-en", ""))
        if section and text:
            texts.append(f"{record['Package'].replace('-', ' ')} {text}")
            labels.append(float(section in _LIBRARIES))
    if len(texts) < _FEWEST or not 0 < sum(labels) < len(labels):
        return None
    return _tfidf("packages", texts, labels, "descriptions of Debian packages; is it a library?")


def _records() -> Iterator[dict[str, str]]:
    try:
        text = subprocess.run(
            ["apt-cache", "dumpavail"], capture_output=True, text=True, errors="replace", timeout=120, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        status = Path("/var/lib/dpkg/status")
        text = status.read_text("utf-8", errors="replace") if status.is_file() else ""
    for paragraph in text.split("\n\n"):
        record: dict[str, str] = {}
        key = ""
        for line in paragraph.split("\n"):
            if line.startswith((" ", "\t")):
                record[key] = record.get(key, "") + " " + line.strip()
            else:
                key, _, value = line.partition(":")
                record[key] = value.strip()
        if "Package" in record:
            yield record


def _docstrings() -> NamedSamples | None:
    texts: list[str] = []
    labels: list[float] = []
    for label, package in enumerate(("scipy", "sklearn")):
        spec = find_spec(package)
        folders = [] if spec is None else spec.submodule_search_locations or []
        for file in (file for folder in folders for file in sorted(Path(folder).rglob("*.py"))):
            found = list(_docstrings_of(file))
            texts += found
            labels += [float(label)] * len(found)
    if len(texts) < _FEWEST or not 0 < sum(labels) < len(labels):
        return None
    return _tfidf("docstrings", texts, labels, "docstrings of scipy and scikit-learn; which is it from?")


def _docstrings_of(file: Path) -> Iterator[str]:
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Module)):
            text = ast.get_docstring(node, clean=False)
            if text and len(text) >= _SHORTEST:
                yield text


def _tfidf(name: str, texts: list[str], labels: list[float], about: str) -> NamedSamples:
    matrix: Any = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True).fit_transform(texts)
    return NamedSamples(name, Samples.of(matrix, np.array(labels)), about)
