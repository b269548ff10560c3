"""What the `catchment` command makes of files and names that people give it: from any folder, and however wrong."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from catchment.checkout import ROOT

Run = Callable[..., str]

TOPOLOGY = """\
switches:
  s1: {program: luwu.p4, ip: 10.0.0.254, mac: 02:00:00:00:fe:01}
hosts:
  w0: {ip: 10.0.0.1/24, mac: 02:00:00:00:00:01, link: s1:1}
"""

P4C = """\
#!/bin/sh
# as p4c-bm2-ss, but what it writes is nothing
while [ $# -gt 1 ]; do case "$1" in --p4runtime-files|-o) : > "$2"; shift;; esac; shift; done
cat "$1"
"""


@pytest.fixture
def run(call: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The command, called in a folder of the test's own; what it says is one line."""
    for name in ("STATE", "RUN", "BUILD"):
        monkeypatch.setenv(f"CATCHMENT_{name}_DIR", str(tmp_path / name))
    monkeypatch.delenv("CATCHMENT_TOPOLOGY", raising=False)
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return lambda *words, **options: " ".join(call(*words, **options).split())


DEEP = 20_000
"""Deeper than any limit of recursion; some libraries raise it for the process that loads them."""


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\xff\xfe", "wrong.yaml:1: not YAML"),
        (b"[" * DEEP, "wrong.yaml:1: nested too deeply"),
        (b"a: &a [*a]", "wrong.yaml:1: a is unknown"),
        (b"", "wrong.yaml:1: empty file"),
    ],
)
def test_what_is_no_topology_is_named(run: Run, content: bytes, said: str) -> None:
    Path("wrong.yaml").write_bytes(content)
    assert said in run("topology", "check", "wrong.yaml", code=1)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\xff\xfe", "wrong.yaml:1: not YAML"),
        (b"[" * DEEP, "wrong.yaml:1: nested too deeply for a dump of a switch"),
        (b"[]", "wrong.yaml:1: not a dump of a switch"),
        (b"format: 1\nmeters: &a {x: *a}\nx: 1", "wrong.yaml:3: x is unknown"),
    ],
)
def test_what_is_no_dump_is_named(run: Run, content: bytes, said: str) -> None:
    Path("wrong.yaml").write_bytes(content)
    assert said in run("table", "load", "127.0.0.1:1", "wrong.yaml", code=1)


def test_programs_are_found_from_where_people_are(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths count from the folder in which the command is called, not from the one in which the compilers run."""
    Path("x.p4").write_text("3")
    assert "x.p4:1:1: error: syntax error" in run("p4", "compile", "x.p4", code=1)
    compiler = tmp_path / "bin" / "p4c-bm2-ss"
    compiler.parent.mkdir()
    compiler.write_text(P4C)
    compiler.chmod(compiler.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(compiler.parent), prepend=":")
    run("p4", "compile", "x.p4", "--target", "bmv2", "-o", "out")
    assert sorted(path.name for path in Path("out").iterdir()) == ["x.json", "x.p4info.txt"]
    run("p4", "compile", "x.p4", "--target", "bmv2")
    assert list((tmp_path / "BUILD").rglob("x.json"))


def test_a_folder_that_cannot_be_written_is_named(run: Run) -> None:
    Path("x.p4").write_text("nonsense")
    Path("file").touch()
    assert "file/out: Not a directory" in run("p4", "compile", "x.p4", "-o", "file/out", code=1)


@pytest.mark.parametrize("verb", [("compile",), ("stf",), ("run",)])
def test_programs_that_are_not_there(run: Run, verb: tuple[str, ...]) -> None:
    said = run("p4", *verb, "x.p4", *(["00"] if verb == ("run",) else []), code=1)
    assert "no P4 program at x.p4" in said or "x.p4:1:1: error: no such file" in said


def test_definitions_mean_the_same_to_every_verb(run: Run) -> None:
    Path("x.p4").write_text("#if X + 0 != 1\n#error X\n#endif\nnonsense")
    Path("x.stf").touch()
    for verb in (("compile", "x.p4"), ("run", "x.p4", "00"), ("stf", "x.p4")):
        assert "#error X" in run("p4", *verb, code=1)
        assert "syntax error" in run("p4", *verb, "-D", "X", code=1)
        assert "#error X" in run("p4", *verb, "-D", "X=", code=1)
        assert "is not NAME=VALUE" in run("p4", *verb, "-D", "1=2", code=2)


@pytest.mark.parametrize("written", ['"part.p4"', "<part.p4>"])
def test_folders_of_included_files_mean_the_same_to_every_verb(run: Run, written: str) -> None:
    Path("x.p4").write_text(f"#include {written}\n")
    Path("x.stf").touch()
    Path("parts").mkdir()
    Path("parts/part.p4").write_text("3")
    for verb in (("compile", "x.p4"), ("run", "x.p4", "00"), ("stf", "x.p4")):
        assert "part.p4: No such file" in run("p4", *verb, code=1)
        assert "parts/part.p4:1:1: error: syntax error" in run("p4", *verb, "-I", "parts", code=1)
        assert "--include absent: no such folder" in run("p4", *verb, "--include", "absent", code=1)


def test_a_program_without_tests_says_so(run: Run) -> None:
    Path("x.p4").write_text("nonsense")
    assert "no test (.stf) beside x.p4" in run("p4", "stf", "x.p4", code=1)


def test_a_test_that_is_no_text_is_named(run: Run) -> None:
    Path("binary.stf").write_bytes(b"# \xff\n\x80\n")
    program = ROOT / "p4src" / "p4sgd.p4"
    assert "binary.stf:2: unknown statement" in run("p4", "stf", str(program), "binary.stf", "--interpret", code=1)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["zz"], "'zz' is neither a packet in hexadecimal nor a file of them"),
        ([" "], "' ' is neither a packet in hexadecimal nor a file of them"),
        (["none"], "none: no packet: give one a line"),
        (["packets"], "packets:2: not a packet in hexadecimal"),
        (["00", "--port", "512"], "there are ports 0 to 511"),
        (["00" * 70000], "frames of 9728 bytes at most"),
    ],
)
def test_packets_that_are_none(run: Run, words: list[str], said: str) -> None:
    Path("packets").write_text("00  # one\n0x0\n")
    Path("none").write_text("# none\n\n")
    program = ROOT / "p4src" / "p4sgd.p4"
    assert said in run("p4", "run", str(program), *words, code=1)


def test_a_port_is_one_interface(run: Run) -> None:
    assert "port 1 is eth0 already" in run("switch", "run", "-p", "1:eth0", "-p", "01:eth1", code=2)


def test_a_switch_whose_socket_would_have_too_long_a_path_is_not_run(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "execv", lambda *_: pytest.fail("it is run"))
    folder = tmp_path / ("long" * 25)
    monkeypatch.setenv("CATCHMENT_RUN_DIR", str(folder))
    said = run("switch", "run", "-p", "1:lo", code=1)
    assert f"so long a path as that of 's1' in {folder}: choose a shorter --name, or give --grpc unix:PATH" in said
    monkeypatch.setenv("CATCHMENT_RUN_DIR", str(tmp_path))
    assert "choose a shorter --name" in run("switch", "run", "-p", "1:lo", "--name", "s" * 90, code=1)


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "-x", "a\nb", "a\0b"])
@pytest.mark.parametrize("grpc", [(), ("--grpc", "127.0.0.1:9559")])
def test_what_is_no_name_of_a_switch_is_refused(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, grpc: tuple[str, ...]
) -> None:
    monkeypatch.setattr(os, "execv", lambda *_: pytest.fail("it is run"))
    monkeypatch.setenv("CATCHMENT_RUN_DIR", str(tmp_path / "run"))
    assert "is no name of a switch" in run("switch", "run", "-p", "1:lo", f"--name={name}", *grpc, code=2)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "-x"])
def test_what_is_no_name_of_a_network_is_refused(run: Run, tmp_path: Path, name: str) -> None:
    (tmp_path / "x.json").touch()
    assert "is no name of a network" in run("net", "down", "--", name, code=1)
    assert (tmp_path / "x.json").exists()


def test_a_doctor_without_patients_says_so(run: Run) -> None:
    Path("lab.yaml").write_text(TOPOLOGY)
    assert "topology lab has no jobs" in run("doctor", "-t", "lab.yaml")
    assert run("doctor", "-t", "lab.yaml", "--json") == "{}"


@pytest.mark.parametrize(
    "words", [["p4", "compile"], ["p4", "stf"], ["simulate-step", "et", "--cluster", "cluster.yaml", "--et"]], ids=str
)
def test_a_path_that_is_too_long_for_a_file_is_said(run: Run, words: list[str]) -> None:
    Path("cluster.yaml").write_text("fabric: {kind: one-switch, hosts: 2}\n", "utf-8")
    assert f"{'x' * 300}: File name too long: give a shorter path" in run(*words, "x" * 300, code=1)


@pytest.mark.parametrize(
    ("p4info", "config", "said"),
    [
        ("none.txtpb", "there", "no P4Info at none.txtpb: give what"),
        ("there", "none.json", "no device configuration at none.json: give what"),
        ("there", ".", "no device configuration at .: give what"),
    ],
)
def test_a_switch_is_not_asked_to_load_what_is_not_there(run: Run, p4info: str, config: str, said: str) -> None:
    Path("there").touch()
    assert said in run("switch", "load", "127.0.0.1:1", p4info, config, code=1)
