"""What `make test CHANGED=1` runs holds every test that must notice a change."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from changed import changed_files, select
from dependencies import closure, dependencies, files_of_the_checkout, is_test, users

from catchment.checkout import ROOT


@cache
def arrows() -> dict[str, set[str]]:
    return users(dependencies())


def planted() -> list[tuple[str, str]]:
    """Every file with a planted bug, and a test file that must fail over it."""
    pairs = set()
    for path in (ROOT / "tests").rglob("*.toml"):
        for bug in tomllib.loads(path.read_text("utf-8")).get("bug", ()):
            test = bug["test"].partition("::")[0]
            below = "rtl/" if path.parent.name == "rtl" else ""  # paths in its list are below rtl/ and tests/rtl/
            pairs.add((f"{below}{bug['file']}", f"tests/{below}{test}"))
    return sorted(pairs)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("file", "test"), planted())
def test_the_test_that_must_notice_a_planted_bug_is_chosen(file: str, test: str) -> None:
    assert test in select({file}, arrows())


def test_a_path_from_the_root_names_one_file() -> None:
    """The list of planted bugs in linear models names host/glm/shares.py, and no neighbour of that name."""
    assert "tests/planted/glm.toml" not in arrows()["tests/planted/shares.py"]


def test_a_verb_asks_for_a_small_part_of_the_tests() -> None:
    every = [name for name in files_of_the_checkout() if is_test(name)]
    assert 0 < len(select({"cli/stats.py"}, arrows())) < len(every) // 4


@pytest.mark.parametrize("name", ["Makefile", "requirements.txt", "tests/conftest.py"])
def test_what_everything_stands_on_asks_for_every_test(name: str) -> None:
    assert select({name}, {}) == sorted(name for name in files_of_the_checkout() if is_test(name))


def test_a_file_that_nobody_names_asks_for_the_tests_of_its_folder() -> None:
    chosen = select({"wire/somebody_new.txt"}, arrows())
    wanted = [name for name in files_of_the_checkout() if is_test(name) and name.startswith("tests/wire/")]
    assert set(wanted) <= set(chosen)
    assert {name.split("/")[1] for name in chosen} == {"wire", "structure", "docs"}


def test_a_conftest_asks_for_all_below_it() -> None:
    chosen = select({"tests/e2e/conftest.py"}, arrows())
    assert {name for name in files_of_the_checkout() if is_test(name) and "tests/e2e/" in name} <= set(chosen)


def test_a_process_group_asked_for_by_name_is_needed() -> None:
    needs = dependencies()["tests/host/torch/distributed/victim.py"]
    assert "host/torch/distributed/registration.py" in needs
    assert "host/torch/distributed/registration.py" not in dependencies()["bench/mics_rings.py"]  # gloo's


def test_users_of_users_are_found_and_circles_end() -> None:
    turned = users({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"e"}})
    assert closure(turned, "b") == {"a", "b", "c"}
    assert closure(turned, "e") == {"d", "e"}


def test_an_unknown_commit_is_said() -> None:
    with pytest.raises(ValueError, match="no-such-commit"):
        changed_files("no-such-commit")
    command = [sys.executable, ROOT / "tests" / "selection" / "changed.py", "no-such-commit"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "no-such-commit" in done.stderr and "give a commit" in done.stderr and "Traceback" not in done.stderr
