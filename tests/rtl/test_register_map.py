"""The generated register map is fresh, and the generator refuses maps that cannot be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from catchment.rtl import generate_registers
from catchment.rtl.generated import nic_regs
from catchment.rtl.regmap.load import SOURCE, load
from catchment.rtl.regmap.model import RegisterMapError


def test_what_is_committed_is_fresh(tmp_path: Path) -> None:
    assert generate_registers.stale() == []
    generate_registers.write(tmp_path)
    assert generate_registers.stale(tmp_path) == []
    (tmp_path / "docs" / "reference" / "registers.md").write_text("edited")
    assert generate_registers.stale(tmp_path) == ["docs/reference/registers.md"]


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('name = "TX_WINDOW"', 'name = "TX_WINDOW", at = 0x040', "both at 0x040"),
        ('name = "TX_WINDOW"', 'name = "TX_GEN"', "TX_GEN is there twice"),
        ("at = 0x1c0", "at = 0x2000", "more than 12 bits"),
        ('name = "pull_done"', 'name = "pull_done", lsb = 0', "pull_done overlaps"),
        ('access = "wo"', 'access = "write"', "none of rw"),
        ('lock = "tx"', 'lock = "both"', "none of tx, rx, any"),
        ("bits = 32, reset = 25000", "bits = 8, reset = 25000", "outside 0..255"),
        ('type = "stat_t"', 'type = "nothing_t"', "no enumeration nothing_t"),
        ('type = "record_t"', 'type = "gone_t"', "no packed struct gone_t"),
        ('type = "record_t"', 'type = "segment_t"', "member unmapped has 1 bits"),
    ],
)
def test_a_map_that_cannot_be_is_refused(tmp_path: Path, old: str, new: str, complaint: str) -> None:
    text = SOURCE.read_text()
    assert old in text
    (tmp_path / "registers.toml").write_text(text.replace(old, new, 1))
    with pytest.raises(RegisterMapError, match=complaint):
        load(tmp_path / "registers.toml")


def test_fields_pack_and_refuse_what_does_not_fit() -> None:
    form = nic_regs.PUSH_FORMAT
    word = form.pack(dtype=2, exponent=-3, tag=0xBEEF)
    assert word == 0xBEEF_FD02
    assert form.unpack(word) == {"dtype": 2, "exponent": -3, "tag": 0xBEEF}
    with pytest.raises(RegisterMapError, match=r"exponent: 128 is outside -128\.\.127"):
        form.pack(exponent=128)
    with pytest.raises(RegisterMapError, match="PUSH_FORMAT has no field colour"):
        form.pack(colour=1)


def test_enumerations_come_from_the_packages() -> None:
    assert nic_regs.Status.OK == 1
    assert nic_regs.Reject.DUPLICATE == 14
    assert nic_regs.Statistic.TX_BYTES == 32


def test_the_completion_record_comes_from_its_struct() -> None:
    record = np.dtype(list(nic_regs.COMPLETION_RECORD))
    assert record.itemsize == 32
    fields = {name: (kind[0].str, kind[1]) for name, kind in (record.fields or {}).items()}
    assert fields["status"] == ("|u1", 0) and fields["exponent"] == ("|i1", 20) and fields["latency"] == ("<u4", 24)
