"""What a process wrote is there for whoever asks, whether the thread that follows it had its turn or not."""

from __future__ import annotations

import subprocess
from io import FileIO
from pathlib import Path
from threading import Thread

from catchment.softswitch.process_output import ProcessOutput


def written(script: str, log: Path, heard: list[str]) -> ProcessOutput:
    """The output of a shell script that has ended; nobody has followed it."""
    process = subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, bufsize=0)
    assert process.wait() == 0
    assert isinstance(process.stdout, FileIO)
    return ProcessOutput(process.stdout, log.open("wb", buffering=0), heard.append)


def test_whoever_asks_gets_what_was_written_before(tmp_path: Path) -> None:
    heard: list[str] = []
    output = written("echo one; echo two; printf thr", tmp_path / "log", heard)
    assert output.lines == heard == ["one", "two"], "the third line is not whole"
    assert (tmp_path / "log").read_bytes() == b"one\ntwo\nthr"
    output.follow()
    assert output.lines == heard == ["one", "two", "thr"]
    output.catch_up()  # nothing comes after the end


def test_a_log_file_is_whole_for_whoever_catches_up(tmp_path: Path) -> None:
    output = written("seq 5000", tmp_path / "log", [])
    output.catch_up()
    assert (tmp_path / "log").read_text("utf-8").split() == [str(n) for n in range(1, 5001)]
    output.follow()
    assert output.lines == [str(n) for n in range(4801, 5001)], "the last 200 are kept"


def test_bytes_that_are_no_text_and_lines_cut_anywhere(tmp_path: Path) -> None:
    heard: list[str] = []
    output = written(r"printf 'a\377b\n\nc'; printf 'd\n'", tmp_path / "log", heard)
    output.follow()
    assert heard == ["a�b", "", "cd"]
    assert (tmp_path / "log").read_bytes() == b"a\xffb\n\ncd\n"


def test_who_asks_while_another_follows_loses_and_doubles_nothing(tmp_path: Path) -> None:
    process = subprocess.Popen(["seq", "200000"], stdout=subprocess.PIPE, bufsize=0)
    assert isinstance(process.stdout, FileIO)
    heard: list[str] = []
    with process:
        output = ProcessOutput(process.stdout, (tmp_path / "log").open("wb", buffering=0), heard.append)
        follower = Thread(target=output.follow)
        follower.start()
        while follower.is_alive():
            assert len(output.lines) <= 200
        follower.join()
    assert heard == [str(n) for n in range(1, 200_001)]
    assert (tmp_path / "log").read_text("utf-8").split() == heard


def test_a_process_goes_on_when_the_disk_of_its_log_is_full() -> None:
    """More than a pipe holds: it would wait for ever for somebody who reads it."""
    process = subprocess.Popen(["seq", "200000"], stdout=subprocess.PIPE, bufsize=0)
    assert isinstance(process.stdout, FileIO)
    heard: list[str] = []
    full = Path("/dev/full")
    with process:
        output = ProcessOutput(process.stdout, full.open("wb", buffering=0), heard.append)
        output.follow()
        first, *rest = heard
        assert (first, rest[-1]) == ("1", "200000")
    assert process.returncode == 0
    assert output.lines[-1] == "200000"


def test_a_log_with_gaps_says_so(tmp_path: Path) -> None:
    output = written("echo one; echo two", Path("/dev/full"), [])
    assert output.lines == ["(8 bytes and more are not in the log file: No space left on device)", "one", "two"]
    output.follow()
