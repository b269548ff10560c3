"""Names of tests' files: pytest imports each by its name alone, and collects only the first of two that share one."""

from __future__ import annotations

from collections import Counter

from catchment.checkout import ROOT


def test_no_two_files_of_tests_share_a_name() -> None:
    names = Counter(path.name for path in (ROOT / "tests").rglob("test_*.py"))
    assert len(names) > 100
    assert [name for name, files in names.items() if files > 1] == []
