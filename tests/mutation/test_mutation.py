"""The mutation tool tells mutants that tests notice from those that they do not, and its list names what is there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import native
from run import Module, change, read_modules
from verdict import Verdict

from catchment.checkout import ROOT

MODULE = "def double(number):\n    return number + number\n"
TEST = "from twice import double\n\n\ndef test_double():\n    assert double(2) == 4\n"
ASK = """
import sys; sys.path[:0] = sys.argv[1:3]
from pathlib import Path; from verdict import try_source
file, test = (Path(sys.argv[2], name) for name in ("twice.py", "test_twice.py"))
print(try_source(file, sys.argv[3], [str(test)], 3 if "while" in sys.argv[3] else 60).verdict.name)
"""


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("source", "verdict"),
    [
        (MODULE, "SURVIVED"),
        (MODULE.replace("number + number", "number * number"), "SURVIVED"),
        (MODULE.replace("number + number", "number - number"), "NOTICED"),
        ("import nothing_of_this_name\n", "NOTICED"),
        ("while True: pass\n", "ENDLESS"),
    ],
)
def test_a_verdict_is_what_the_tests_say_of_the_mutant(source: str, verdict: str, tmp_path: Path) -> None:
    (tmp_path / "twice.py").write_text(MODULE, "utf-8")
    (tmp_path / "test_twice.py").write_text(TEST, "utf-8")
    command = [sys.executable, "-c", ASK, str(Path(__file__).parent), str(tmp_path), source]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.split() == [verdict]
    assert (tmp_path / "twice.py").read_text("utf-8") == MODULE


@pytest.mark.parametrize(
    ("code", "verdict"),
    [
        (0, Verdict.SURVIVED),
        (1, Verdict.NOTICED),
        (99, Verdict.UNBUILT),
        (124, Verdict.ENDLESS),
        (139, Verdict.NOTICED),
    ],
)
def test_a_mutant_of_cpp_is_judged_by_how_its_build_and_tests_end(
    code: int, verdict: Verdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def run_changed(file: str, text: str, *_: object, **__: object) -> subprocess.CompletedProcess[str]:
        asked.append(text)
        return subprocess.CompletedProcess([], code if text == "a mutant" else 0, "", "")

    monkeypatch.setattr(native, "run_changed", run_changed)
    monkeypatch.setattr(native, "can_plant", lambda: True)
    file = "host/transport/native/sender_window.cpp"
    assert list(native.try_native(file, [], [], ["a mutant"])) == [("a mutant", verdict)]
    assert asked == [(ROOT / file).read_text("utf-8"), "a mutant"]


def test_cpp_whose_tests_fail_as_it_is_has_no_mutants(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = subprocess.CompletedProcess([], 1, "1 failed", "")
    monkeypatch.setattr(native, "run_changed", lambda *_, **__: failed)
    monkeypatch.setattr(native, "can_plant", lambda: True)
    with pytest.raises(native.MutationError, match="fail on it as it is"):
        list(native.try_native("host/transport/native/sender_window.cpp", [], [], ["a mutant"]))


def test_a_survivor_names_its_line() -> None:
    module = read_modules()[0]
    lines = (ROOT / module.file).read_text("utf-8").splitlines()
    number = next(number for number, line in enumerate(lines) if line.strip().startswith("return "))
    mutant = "\n".join([*lines[:number], "    return None", *lines[number + 1 :]])
    at = change(module, mutant)
    assert (at.number, at.line, at.becomes) == (number + 1, lines[number].strip(), "return None")
    assert str(at).startswith(f"{module.file}:{number + 1}: return ")


@pytest.mark.parametrize("module", read_modules(), ids=lambda module: module.file)
def test_the_list_names_what_is_there(module: Module) -> None:
    lines = {line.strip() for line in (ROOT / module.file).read_text("utf-8").splitlines()}
    assert all((ROOT / test.partition("::")[0]).exists() for test in module.tests)
    assert module.file.endswith(".py") != bool(module.targets)
    assert all(line in lines and becomes not in lines and why for line, becomes, why in module.same)


def test_a_selection_without_a_module_is_refused() -> None:
    command = [sys.executable, str(Path(__file__).with_name("run.py")), "-k", "no/such/module"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.strip() == "mutants: no module of modules.toml has 'no/such/module' in its path"
