"""A store that is only read: by several at once, and from a file system that cannot be written to."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from out_of_core import TABLE, create
from typer.testing import CliRunner

from catchment.cli import app
from catchment.host.optimizer.store import Store, StoreError, page_aligned
from catchment.host.optimizer.store.check import check


@pytest.fixture
def places(tmp_path: Path) -> list[Path]:
    found = [tmp_path / name for name in ("x", "y")]
    create(found).close()
    return found


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Path]:
    """A file system with a store, read-only."""
    folder = tmp_path / "mounted"
    folder.mkdir()
    if os.geteuid() or subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder], check=False).returncode:
        pytest.skip("needs the right to mount a tmpfs")
    try:
        create([folder]).close()
        subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def test_several_read_at_once_and_nobody_writes_meanwhile(places: list[Path]) -> None:
    with Store.open(places, read_only=True) as one, Store.open(places, read_only=True) as other:
        assert check(one) == check(other) == []
        with pytest.raises(StoreError, match="another process has this store open") as busy:
            Store.open(places)
        assert busy.value.kind == "busy"
    with Store.open(places), pytest.raises(StoreError, match="another process has this store open"):
        Store.open(places, read_only=True)


@pytest.mark.parametrize(
    "write",
    [
        lambda store: store.place(0),
        lambda store: store.spare_plane(),
        lambda store: store.write(0, 0, store.geometry.sections[0], page_aligned(1 << 20)),
        lambda store: store.commit(1),
        lambda store: store.take_snapshot("now"),
    ],
    ids=["place", "spare_plane", "write", "commit", "take_snapshot"],
)
def test_what_would_write_is_refused(places: list[Path], write: Callable[[Store], object]) -> None:
    before = [place.read_bytes() for place in places]
    with Store.open(places, read_only=True) as store:
        with pytest.raises(StoreError, match="it was opened to be read: open it without read_only") as refused:
            write(store)
        assert refused.value.kind == "argument"
        assert check(store) == []
    assert [place.read_bytes() for place in places] == before


def test_a_store_on_a_read_only_file_system_can_be_read_and_exported(mounted: Path, tmp_path: Path) -> None:
    run, store = CliRunner().invoke, str(mounted)
    for verb in (
        ["inspect", store],
        ["verify", store],
        ["snapshots", store],
        ["export", str(tmp_path / "out"), "-s", store],
    ):
        ran = run(app, ["optimizer", *verb])
        assert ran.exit_code == 0, (verb, ran.exception)
    refused = run(app, ["optimizer", "snapshot", "now", "-s", store])
    assert "open failed: Read-only file system" in str(refused.exception)
    made = run(app, ["optimizer", "import", str(tmp_path / "out"), "-s", str(tmp_path / "made")])
    assert f"{TABLE.numel:,} parameters" in made.stdout, made.exception
