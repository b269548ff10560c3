"""The name of the processors that programs are compiled for: another one wherever they may know other instructions."""

from __future__ import annotations

from pathlib import Path

import pytest

from catchment import processors as module
from catchment.processors import MARCH, march, processors

INTEL = """processor\t: 0
vendor_id\t: GenuineIntel
cpu family\t: 6
model\t\t: 167
model name\t: Intel(R) Xeon(R) Processor
cpu MHz\t\t: 2600.000
flags\t\t: fpu sse avx2 avx512f

processor\t: 1
vendor_id\t: GenuineIntel
cpu MHz\t\t: 1700.000
flags\t\t: fpu sse avx2 avx512f
"""
ARM = """processor\t: 0
BogoMIPS\t: 243.75
Features\t: fp asimd sve
CPU implementer\t: 0x41
CPU part\t: 0xd40
"""


@pytest.fixture
def described(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv(MARCH, raising=False)
    monkeypatch.setattr(module, "_DESCRIPTION", tmp_path / "cpuinfo")
    return tmp_path / "cpuinfo"


def name_of(described: Path, text: str) -> str:
    described.write_text(text)
    return processors()


@pytest.mark.parametrize(
    ("text", "same", "others"),
    [
        (
            INTEL,
            [
                INTEL.replace("2600.000", "800.000"),
                INTEL.split("\n\n", maxsplit=1)[0] + "\n",
                INTEL.replace("1700.000", "2600.000"),
            ],
            [INTEL.replace(" avx512f", ""), INTEL.replace("167", "143"), INTEL.replace("GenuineIntel", "AuthenticAMD")],
        ),
        (ARM, [ARM.replace("243.75", "50.00")], [ARM.replace(" sve", ""), ARM.replace("0xd40", "0xd4f")]),
    ],
    ids=["x86", "arm"],
)
def test_machines_that_may_differ_in_instructions_have_other_names(
    described: Path, text: str, same: list[str], others: list[str]
) -> None:
    name = name_of(described, text)
    assert name.startswith("native-")
    assert [name_of(described, one) for one in same] == [name] * len(same)
    assert len({name, *(name_of(described, one) for one in others)}) == 1 + len(others)


def test_the_variable_names_others(described: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    described.write_text(INTEL)
    own = processors()
    monkeypatch.setenv(MARCH, "x86-64-v3")
    assert (march(), processors()) == ("x86-64-v3", "x86-64-v3")
    monkeypatch.setenv(MARCH, "../x")
    assert "/" not in processors()  # it is a part of a folder's name
    names = set()
    for given in ("x" * 300, "x" * 300 + "y", "\udcff", "\u00ff" * 100):  # the third is a byte that is no text
        monkeypatch.setenv(MARCH, given)
        names.add(processors())
        assert processors().isascii() and len(processors()) < 100
    assert len(names) == 4
    monkeypatch.setenv(MARCH, "")
    assert (march(), processors()) == ("native", own)


def test_without_a_description_the_architecture_tells(described: Path) -> None:
    assert not described.exists()
    assert processors().startswith("native-")
