"""Answers to what strangers ask first lie at most two clicks from the README."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from catchment.checkout import ROOT

_README = ROOT / "README.md"
_LINK = re.compile(r"\]\(([^)#\s]+\.md)(?:#[^)]*)?\)")
_QUESTIONS = {
    "how do I run my own model?": ("# Your own model in the network",),
    "what does an entry of jobs mean?": ("what an entry of `jobs` means",),
    "why can a lost frame not count twice?": ("## Why a lost frame cannot count twice",),
    "how fast is it beside gloo and Open MPI, and how was that measured?": (
        "gloo",
        "Open MPI",
        "`make bench-allreduce`",
    ),
}


def _linked(page: Path) -> set[Path]:
    """The pages of this repository that a page links to."""
    targets = ((page.parent / link).resolve() for link in _LINK.findall(page.read_text("utf-8")))
    return {target for target in targets if target.is_file()}


@pytest.mark.parametrize("question", _QUESTIONS)
def test_an_answer_is_within_two_clicks(question: str) -> None:
    once = _linked(_README)
    near = once.union(*map(_linked, once))
    words = _QUESTIONS[question]
    texts = {page: " ".join(page.read_text("utf-8").split()) for page in near}
    assert any(all(word in text for word in words) for text in texts.values()), f"{question} {sorted(near)}"
