"""The store: what is written comes back from any devices, and whatever is wrong is said, with nothing lost."""

from __future__ import annotations

import errno
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from out_of_core import TABLE, create, digest, initial, train

from catchment.checkout import ROOT
from catchment.host import _optimizer
from catchment.host.layers import LayerSpec, LayerTable
from catchment.host.optimizer import Sgd
from catchment.host.optimizer.store import (
    UNIT,
    Geometry,
    Precision,
    Rule,
    Store,
    StoreError,
    StoreOptions,
    page_aligned,
)
from catchment.host.optimizer.store.check import check
from catchment.host.optimizer.store.errors import of_errno
from catchment.host.optimizer.store.geometry import PAGE
from catchment.host.optimizer.streaming import StreamingOptions


@pytest.fixture
def places(tmp_path: Path) -> list[Path]:
    folders = [tmp_path / name for name in ("x", "y", "z")]
    for folder in folders:
        folder.mkdir()
    return folders


@given(
    sizes=st.lists(st.integers(1, 5 * UNIT), min_size=1, max_size=7),
    devices=st.integers(1, 5),
    rule=st.sampled_from(Rule),
    parameters=st.sampled_from(Precision),
    moments=st.sampled_from(Precision),
)
def test_shards_cover_a_plane_without_overlap(
    sizes: list[int], devices: int, rule: Rule, parameters: Precision, moments: Precision
) -> None:
    table = LayerTable(tuple(LayerSpec.of(i, f"l{i}", [(f"t{i}", (n,))]) for i, n in enumerate(sizes)))
    geometry = Geometry(table, devices, rule, parameters, moments)
    taken: list[list[tuple[int, int]]] = [[] for _ in range(devices)]
    for layer in table:
        units = geometry.shard_units(layer.index)
        assert sum(units) == geometry.units(layer.index)
        assert max(units) - min(units) <= 1
        for section in geometry.sections:
            at = 0
            for shard in geometry.shards(layer.index, section):
                assert shard.first == at
                assert shard.offset % PAGE == 0
                at += shard.units
                length = shard.units * UNIT * section.size
                taken[shard.device].append((shard.offset, length))
            assert at == geometry.units(layer.index)
    for device in range(devices):
        end = 0
        for start, length in sorted(taken[device]):
            assert start == end
            end += length
        assert end == geometry.plane_bytes(device)
    whole = [geometry.plane_bytes(device) for device in range(devices)]
    element = sum(section.size for section in geometry.sections)
    assert sum(whole) == element * UNIT * sum(geometry.units(layer.index) for layer in table)


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    devices=st.integers(1, 4),
    engine=st.sampled_from(["uring", "blocking"]),
    direct=st.booleans(),
    chunk=st.sampled_from([PAGE, 3 * PAGE, 1 << 20]),
    depth=st.integers(1, 9),
    seed=st.integers(0, 2**32),
)
def test_what_is_written_comes_back(  # noqa: PLR0917
    tmp_path_factory: pytest.TempPathFactory,
    devices: int,
    engine: str,
    direct: bool,
    chunk: int,
    depth: int,
    seed: int,
) -> None:  # fmt: skip
    folder = tmp_path_factory.mktemp("store")
    places = [folder / str(index) for index in range(devices)]
    options = {"engine": engine, "direct": direct, "chunk": chunk, "depth": depth}
    generator = np.random.default_rng(seed)
    with create(places, **options) as store:
        geometry = store.geometry
        written = {}
        for layer in TABLE:
            sections = {s.name: page_aligned(geometry.section_bytes(layer.index, s)) for s in geometry.sections}
            for memory in sections.values():
                memory[:] = generator.integers(0, 256, memory.size, np.uint8)
            plane = store.place(layer.index)
            steps = (3,) * len(layer.tensors)
            store.put(layer.index, store.write_layer(plane, layer.index, sections, steps, [layer.index]))
            written[layer.index] = sections
        store.commit(5, {"epoch": 2})
    random.Random(seed).shuffle(places)
    with Store.open(places, StoreOptions(engine="blocking" if engine == "uring" else "uring")) as store:
        assert store.state.trained == 5
        assert dict(store.state.notes) == {"epoch": 2}
        for layer in TABLE:
            version = store.version(layer.index)
            assert (version.steps, version.notes) == ((3,) * len(layer.tensors), [layer.index])
            for section in store.geometry.sections:
                memory = page_aligned(store.geometry.section_bytes(layer.index, section))
                store.read(version, layer.index, section, memory).wait()
                assert np.array_equal(memory, written[layer.index][section.name])


def test_a_new_store_has_the_weights_and_moments_of_zero(places: list[Path]) -> None:
    with create(places) as store:
        for layer in TABLE:
            found = {}
            for section in store.geometry.sections:
                memory = page_aligned(store.geometry.section_bytes(layer.index, section))
                store.read(store.version(layer.index), layer.index, section, memory).wait()
                found[section.name] = memory
            master = torch.from_numpy(found["master"].view(np.float32))[: layer.numel]
            assert torch.equal(master, initial(layer.index))
            sent = torch.from_numpy(found["parameters"].view(np.int16)).view(torch.bfloat16)[: layer.numel]
            assert torch.equal(sent, initial(layer.index).to(torch.bfloat16))
            assert not found["first"].any()
            assert not found["second"].any()


# ---- errors ----------------------------------------------------------------------------------


def _kind(kind: str, match: str, work: Callable[[], object]) -> StoreError:
    with pytest.raises(StoreError, match=match) as caught:
        work()
    assert caught.value.kind in kind.split("|")
    return caught.value


def test_what_is_not_there_or_not_a_store(places: list[Path], tmp_path: Path) -> None:
    _kind("missing", "no such file", lambda: Store.open(places))
    (tmp_path / "text").write_bytes(b"hello" * 2000)
    (tmp_path / "short").write_bytes(b"x")
    for name in ("text", "short"):
        _kind("missing", "not an optimizer store", lambda n=name: Store.open([tmp_path / n]))
    _kind("argument", "no place", lambda: Store.open([]))
    _kind("device", "Permission denied|Not a directory", lambda: Store.open([tmp_path / "text" / "below"]))
    for wrong in ({"engine": "magic"}, {"chunk": 100}, {"depth": 0}, {"rate": -1.0}, {"threads": 0}):
        _kind("argument", next(iter(wrong)), lambda w=wrong: StoreOptions(**w))


@pytest.mark.parametrize("content", [b"notes of mine", b"\0" * 5000 + b"data" * 2000, b"x" + b"\0" * 5000])
def test_a_file_of_something_else_is_not_overwritten_unasked(tmp_path: Path, content: bytes) -> None:
    place = tmp_path / "mine"
    place.write_bytes(content)
    if any(content[:4096]):
        with pytest.raises(StoreError, match="something else already") as caught:
            create([place])
        assert caught.value.kind == "busy" and place.read_bytes() == content
    Store.create([place], Geometry(TABLE, 1), initial, overwrite=True).close()
    Store.open([place]).close()


def test_devices_that_do_not_belong_together(places: list[Path], tmp_path: Path) -> None:
    create(places[:2]).close()
    create([places[2]]).close()
    _kind("mismatch", "belongs to store", lambda: Store.open([places[0], places[2]]))
    _kind("mismatch", "number 1 is not among", lambda: Store.open([places[0]]))
    (tmp_path / "copy").write_bytes((places[0] / "optimizer.store").read_bytes())
    _kind("mismatch", "is device 0, and so is", lambda: Store.open([places[0], tmp_path / "copy"]))
    _kind("argument", "named twice", lambda: Store.open([places[0], places[0]]))
    _kind("argument", "1 places for 2", lambda: Store.create([places[0]], Geometry(TABLE, 2), initial))


def test_one_process_at_a_time(places: list[Path]) -> None:
    with create(places):
        _kind("busy", "another process", lambda: Store.open(places))
    _kind("busy", "a store already", lambda: create(places))
    Store.open(places).close()
    Store.create(places, Geometry(TABLE, 3), initial, overwrite=True).close()


def test_another_version_is_refused(places: list[Path]) -> None:
    create(places).close()
    with (places[1] / "optimizer.store").open("r+b") as file:
        file.seek(8)
        file.write(b"\x63")
    error = _kind("version", "version 99, this release reads 1", lambda: Store.open(places))
    assert str(places[1]) in error.path


def test_a_flipped_bit_anywhere_is_found_and_named(places: list[Path], rng: random.Random) -> None:
    with create(places) as store:
        train(store, 2)
        before = digest(store)
    paths = [place / "optimizer.store" for place in places]
    for _ in range(40):
        device = rng.randrange(3)
        raw = bytearray(paths[device].read_bytes())
        place, bit = rng.randrange(len(raw)), 1 << rng.randrange(8)
        raw[place] ^= bit
        paths[device].write_bytes(raw)
        try:
            with Store.open(places) as store:
                damage = check(store)
                if damage:
                    assert all("the checksum at byte" in d.message and str(paths[device]) in d.message for d in damage)
                elif store.state.trained == 2:
                    assert digest(store) == before  # an old plane, padding, or the older record
                else:
                    assert store.state.trained == 1  # the newer record: the older one stands
        except StoreError as error:
            assert error.kind in {"corrupt", "missing", "version"}  # noqa: PT017
            assert error.path == str(paths[device])  # noqa: PT017
        raw[place] ^= bit
        paths[device].write_bytes(raw)
    with Store.open(places) as store:
        assert digest(store) == before


@pytest.mark.parametrize("section", ["parameters", "master", "first", "second"])
def test_training_on_a_flipped_bit_ends_and_a_snapshot_brings_it_back(places: list[Path], section: str) -> None:
    with create(places) as store:
        train(store, 2, streaming=StreamingOptions(snapshot_every=2))
        train(store, 3)
        version = store.version(2)
        chosen = next(each for each in store.geometry.sections if each.name == section)
        shard = list(store.geometry.shards(2, chosen))[1]
        offset = store._manifest.plane_offset(shard.device, version.plane) + shard.offset
    path = places[shard.device] / "optimizer.store"
    with path.open("r+b") as file:
        file.seek(offset + 1000)
        byte = file.read(1)[0]
        file.seek(offset + 1000)
        file.write(bytes([byte ^ 4]))
    with Store.open(places) as store:
        error = _kind(
            "corrupt", rf"layer 2 \(block.1\), {section}: the checksum at byte {offset}", lambda: train(store, 4)
        )
        assert error.path == str(path)
        _kind("corrupt", "checksum", lambda: store.commit(4))  # it takes no more writes
    with Store.open(places) as store:
        assert store.state.trained == 3
        store.restore_snapshot("step-2")
        assert check(store)[0].state == "present" if store.version(2).plane == version.plane else True
        train(store, 4)
        assert store.state.trained == 4


@pytest.mark.parametrize("on", ["read", "write", "sync"])
def test_a_failing_device_ends_the_training_with_its_name(places: list[Path], on: str) -> None:
    create(places).close()
    with Store.open(places) as store:
        train(store, 1)
        before = digest(store)
    faults = _optimizer.Faults(on=on, after=30 if on == "read" else 6, error=errno.EIO)
    with Store.open(places, StoreOptions(faults=faults)) as store:
        error = _kind("device", f"{on}.* failed: Input/output error", lambda: train(store, 9))
        assert Path(error.path).parent in places
    with Store.open(places) as store:
        if store.state.trained == 1:
            assert digest(store) == before
        assert check(store) == []


def test_a_file_that_was_cut_short(places: list[Path]) -> None:
    create(places).close()
    path = places[2] / "optimizer.store"
    os.truncate(path, path.stat().st_size // 2)
    with Store.open(places) as store:
        damage = check(store)
    assert damage
    assert all("beyond the end of the file" in d.message and str(path) in d.message for d in damage)


@pytest.mark.parametrize("pages", [1, 2])
def test_a_device_that_was_cut_to_its_manifest(places: list[Path], pages: int) -> None:
    create(places).close()
    path = places[0] / "optimizer.store"
    os.truncate(path, pages * PAGE)
    error = _kind("corrupt", "no commit record is whole", lambda: Store.open(places))
    assert error.path == str(path)


# ---- disk full -------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB (tmpfs, which also has no direct I/O on older kernels)."""
    folder = tmp_path / "small"
    folder.mkdir()
    if (
        os.geteuid()
        or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], check=False).returncode
    ):
        pytest.skip("needs the right to mount a tmpfs")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_full_disk_when_a_store_is_made(small_disk: Path) -> None:
    large = LayerTable((LayerSpec.of(0, "only", [("only.weight", (40 * UNIT,))]),))
    _kind("full", "no space", lambda: Store.create([small_disk], Geometry(large, 1), lambda _: torch.zeros(40 * UNIT)))
    _kind("missing", "not an optimizer store", lambda: Store.open([small_disk]))


def test_a_store_is_not_lost_to_one_that_has_no_room(small_disk: Path, tmp_path: Path) -> None:
    """Neither where its first device is large enough and the second is not."""
    places = [tmp_path / "other", small_disk]
    small = LayerTable((LayerSpec.of(0, "only", [("only.weight", (UNIT,))]),))
    Store.create(places, Geometry(small, 2), lambda _: torch.ones(UNIT)).close()
    large = Geometry(LayerTable((LayerSpec.of(0, "only", [("only.weight", (80 * UNIT,))]),)), 2)
    _kind("full", "no space for", lambda: Store.create(places, large, lambda _: torch.zeros(80 * UNIT), overwrite=True))
    with Store.open(places) as store:
        assert store.geometry.table[0].numel == UNIT
        assert check(store) == []


def test_what_fails_once_the_old_store_is_gone_promises_nothing(tmp_path: Path) -> None:
    create([tmp_path]).close()

    def complete(_: Store) -> None:
        raise of_errno(errno.ENOSPC, "write", "here")

    again = partial(Store.create, [tmp_path], Geometry(TABLE, 1), initial, overwrite=True, complete=complete)
    said = str(_kind("full", "here: write failed, no space is left: there is no store here now", again))
    assert "intact" not in said
    _kind("missing", "not an optimizer store", lambda: Store.open([tmp_path]))


def test_a_full_disk_later_loses_nothing(small_disk: Path, tmp_path: Path) -> None:
    rule = Sgd()
    small = LayerTable((LayerSpec.of(0, "only", [("only.weight", (9 * UNIT,))]),))
    geometry = Geometry(small, 2, rule.kind)
    places = [small_disk, tmp_path / "other"]
    with Store.create(places, geometry, lambda _layer: torch.zeros(9 * UNIT)) as store:
        (small_disk / "filler").write_bytes(bytes(os.statvfs(small_disk).f_bavail * os.statvfs(small_disk).f_bsize))
        section = {s.name: page_aligned(geometry.section_bytes(0, s)) for s in geometry.sections}
        store.put(0, store.write_layer(store.place(0), 0, section, (1,)))
        store.commit(1, snapshot="kept")
        store.put(0, store.write_layer(store.place(0), 0, section, (2,)))
        store.commit(2)
        _kind("full", "no space for", lambda: store.place(0))
        store.drop_snapshot("kept")
        store.put(0, store.write_layer(store.place(0), 0, section, (3,)))
        store.commit(3)
    with Store.open(places) as store:
        assert store.version(0).steps == (3,)
        assert check(store) == []


@pytest.fixture
def thin_device(small_disk: Path) -> Iterator[Path]:
    """A block device that promises more than its disk has: when that is full, the kernel fails its writes."""
    backing = small_disk / "backing"
    backing.touch()
    os.truncate(backing, 8 << 20)
    made = subprocess.run(["losetup", "--find", "--show", backing], capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"needs the right to make a loop device: {made.stderr.strip()}")
    device = Path(made.stdout.strip())
    yield device
    subprocess.run(["losetup", "--detach", device], check=True)


def test_a_device_that_really_fails_ends_the_training_and_loses_nothing(
    small_disk: Path, thin_device: Path, tmp_path: Path
) -> None:
    with create([tmp_path / "whole"]) as store:
        train(store, 4)
        wanted = digest(store)
    places = [thin_device, *(tmp_path / str(number) for number in range(3))]
    with create(places) as store:
        train(store, 1)
        store.take_snapshot("kept")  # the next steps need a place that was never written
    filler = small_disk / "filler"
    filler.write_bytes(bytes(os.statvfs(small_disk).f_bavail * os.statvfs(small_disk).f_bsize))
    with Store.open(places) as store:
        error = _kind("device|full", r"(write|sync) .*(Input/output error|no space is left)", lambda: train(store, 4))
        assert error.path == str(thin_device)
        found = store.state.trained
    filler.unlink()
    with Store.open(places) as store:
        assert store.state.trained >= found >= 1
        assert check(store) == []
        train(store, 4)
        assert digest(store) == wanted


# ---- snapshots -------------------------------------------------------------------------------


def test_snapshots_are_copies_on_write(places: list[Path]) -> None:
    with create(places) as store:
        train(store, 1)
        planes = store.space.planes
        store.take_snapshot("first")
        assert store.space.planes == planes  # free until the training goes on
        wanted = digest(store)
        train(store, 4)
        assert store.space.planes == planes + 1
        later = digest(store)
        assert later != wanted
        store.take_snapshot("second")
    with Store.open(places) as store:
        assert list(store.snapshots) == ["first", "second"]
        store.restore_snapshot("first")
        assert digest(store) == wanted
        train(store, 4)
        assert digest(store) == later
        store.drop_snapshot("first")
        _kind("argument", "no snapshot 'first'.*there are: second", lambda: store.restore_snapshot("first"))
        _kind("argument", "no snapshot", lambda: store.drop_snapshot("first"))
        assert check(store) == []


def test_a_snapshot_that_is_taken_again_is_the_newest(places: list[Path]) -> None:
    with create(places) as store:
        for name in ("best", "other", "best"):
            store.take_snapshot(name)
        assert list(store.snapshots) == ["other", "best"]
    with Store.open(places) as store:
        assert list(store.snapshots) == ["other", "best"]


def test_the_record_has_room_for_some_snapshots_and_says_when_it_has_not(places: list[Path]) -> None:
    with create(places) as store:

        def fill() -> None:
            for number in range(10_000):
                store.take_snapshot(f"{'a long name ' * 30}{number}")

        _kind("full", "drop a snapshot", fill)
    with Store.open(places) as store:
        assert len(store.snapshots) >= 8


def test_a_closed_store(places: list[Path]) -> None:
    store = create(places)
    store.close()
    store.close()
    _kind("closed", "closed", lambda: store.commit(1))


@pytest.mark.sampled(4)
def test_without_io_uring_it_says_so_and_works(places: list[Path], tmp_path: Path) -> None:
    create(places).close()
    program = (
        "import resource, sys\n"
        "from catchment.host.optimizer.store import Store, StoreOptions\n"
        "from catchment.host import _optimizer\n"
        "real = _optimizer.Device\n"
        "def refuse(*a, **k):\n"
        "    if k['uring']: raise PermissionError(1, 'Operation not permitted')\n"
        "    return real(*a, **k)\n"
        "_optimizer.Device = refuse\n"
        "with Store.open(sys.argv[1:]) as store: print(*store.limits, sep='\\n')\n"
    )
    root = ROOT
    ran = subprocess.run(
        [sys.executable, "-c", program, *map(str, places)], cwd=root, capture_output=True, text=True, check=True
    )
    assert ran.stdout.count("io_uring is not permitted (Operation not permitted); one call at a time instead") == 3
