"""Files of a certificate authority: a private key is its owner's alone, whatever lay there before."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from catchment.controlplane.controller.certificates import belong_together, load, make, renew


@pytest.fixture
def names(tmp_path: Path) -> list[str]:
    """Names that new keys have until they are whole, of one authority with a host."""
    make(tmp_path / "first", ["w0"])
    found = [f"{path.name}.new" for path in sorted((tmp_path / "first").glob("*.key"))]
    assert len(found) == 4
    return found


def test_who_has_a_file_open_reads_no_key(tmp_path: Path, names: list[str]) -> None:
    folder = tmp_path / "certificates"
    folder.mkdir()
    watched = []
    for name in names:
        (folder / name).write_text("left by another process")
        (folder / name).chmod(0o666)
        watched.append((folder / name).open("rb"))
    make(folder, ["w0"])
    renew(folder, "operator")
    for file in watched:
        with file:
            assert file.read() == b"left by another process"
            assert os.fstat(file.fileno()).st_nlink == 0
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in folder.glob("*.key"))
    assert not list(folder.glob("*.new"))
    assert belong_together(load(folder, "operator"))


def test_a_key_is_not_written_where_a_link_leads(tmp_path: Path, names: list[str]) -> None:
    folder, elsewhere = tmp_path / "certificates", tmp_path / "elsewhere"
    folder.mkdir()
    for name in names:
        (folder / name).symlink_to(elsewhere)
    make(folder, ["w0"])
    assert not elsewhere.exists()
    assert not any(path.is_symlink() for path in folder.iterdir())
