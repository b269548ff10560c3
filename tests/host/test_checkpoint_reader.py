"""The metadata of a checkpoint: what is garbage is said with its file, and nothing in it is executed."""

from __future__ import annotations

import os
import pickle
import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.metadata import Metadata
from torch.distributed.checkpoint.state_dict import get_state_dict

from catchment.host.checkpoint_reader import METADATA, CheckpointError, CheckpointReader
from catchment.host.optimizer.dcp import look_at_dcp
from catchment.host.optimizer.store import StoreError


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The metadata of a model and its optimizer, as torch writes them."""
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(2, 3)).sum().backward()
    optimizer.step()
    folder = tmp_path_factory.mktemp("whole")
    state = dict(zip(("model", "optimizer"), get_state_dict(model, optimizer), strict=True))
    dcp.save(state, checkpoint_id=folder, no_dist=True)
    return (folder / METADATA).read_bytes()


def refused(folder: Path, raw: bytes, words: str) -> None:
    """Both who reads the metadata and who imports the checkpoint say so."""
    (folder / METADATA).write_bytes(raw)
    with pytest.raises(CheckpointError) as caught:
        CheckpointReader(folder).read_metadata()
    assert f"{folder / METADATA}: no metadata of a checkpoint (" in str(caught.value)
    assert words in str(caught.value)
    with pytest.raises(StoreError, match="restore it from a copy") as told:
        look_at_dcp(folder)
    assert told.value.kind == "corrupt"
    assert str(folder / METADATA) in str(told.value)


def test_what_torch_writes_is_read(whole: bytes, tmp_path: Path) -> None:
    (tmp_path / METADATA).write_bytes(whole)
    found, known = CheckpointReader(tmp_path).read_metadata(), pickle.loads(whole)
    assert found.state_dict_metadata == known.state_dict_metadata
    assert found.storage_data == known.storage_data
    assert found.planner_data == known.planner_data


@pytest.mark.parametrize(
    "raw",
    [b"", b"garbage", b"\x80\x04", b"{}", b"\0" * 100, pickle.dumps({"a": 3}), pickle.dumps(None), b"\x80\x04]" * 9],
)
def test_garbage_is_said_with_its_file(tmp_path: Path, raw: bytes) -> None:
    refused(tmp_path, raw, "")


def test_a_changed_byte_is_said_or_changes_nothing_else(whole: bytes, tmp_path: Path, rng: random.Random) -> None:
    for _ in range(200):
        changed = bytearray(whole)
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
        (tmp_path / METADATA).write_bytes(changed)
        with suppress(CheckpointError):
            assert isinstance(CheckpointReader(tmp_path).read_metadata(), Metadata)


class Marker:
    """Unpickled, it writes a file."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (self._path,)


CALLS = {
    "mkdir": Marker,
    "a class": lambda path: pickle.PickleBuffer,
    "eval": lambda path: eval,
    "torch's own": lambda path: torch.load,
    "another of pathlib": lambda path: os.path.join,
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("hidden", [False, True], ids=["alone", "in metadata"])
def test_nothing_is_executed(whole: bytes, tmp_path: Path, call: Callable[[Path], object], hidden: bool) -> None:
    there = tmp_path / "there"
    made: object = call(there)
    if hidden:
        made = pickle.loads(whole)
        made.planner_data["more"] = call(there)
    refused(tmp_path, pickle.dumps(made), "which is not executed")
    assert not there.exists()


def test_no_class_is_changed(tmp_path: Path) -> None:
    of_a_class = [pickle.PROTO, b"\x04", pickle.GLOBAL, f"{Metadata.__module__}\nMetadata\n".encode()]
    state = [
        pickle.NONE,
        pickle.EMPTY_DICT,
        pickle.UNICODE,
        b"planted\n",
        pickle.NEWTRUE,
        pickle.SETITEM,
        pickle.TUPLE2,
    ]
    refused(tmp_path, b"".join([*of_a_class, *state, pickle.BUILD, pickle.STOP]), "it changes Metadata")
    assert not hasattr(Metadata, "planted")


def test_a_place_that_a_damaged_byte_names_is_not_allocated(tmp_path: Path) -> None:
    """The unpickler in C makes room for all places up to that one: 64 GiB here."""
    raw = b"".join([pickle.PROTO, b"\x04", pickle.NONE, pickle.LONG_BINPUT, b"\xff\xff\xff\xff", pickle.STOP])
    refused(tmp_path, raw, "it is a NoneType")


def _with(change: Callable[[Metadata], object]) -> Callable[[Metadata], Metadata]:
    def changed(metadata: Metadata) -> Metadata:
        change(metadata)
        return metadata

    return changed


def _of_first(metadata: Metadata, **changes: object) -> None:
    """Change a tensor's entry."""
    vars(metadata.state_dict_metadata["model.0.weight"]).update(changes)


def _placed(metadata: Metadata, **changes: object) -> None:
    """Change the place of every value."""
    for place in metadata.storage_data.values():
        vars(place).update(changes)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda metadata: setattr(metadata, "state_dict_metadata", []), "state_dict_metadata is a list"),
        (lambda metadata: setattr(metadata, "storage_data", None), "storage_data is a NoneType"),
        (lambda metadata: metadata.state_dict_metadata.update({3: None}), "a key is a int"),
        (lambda metadata: metadata.state_dict_metadata.update({"x": 5}), "x is a int"),
        (lambda metadata: _of_first(metadata, size=(4, 3)), "the size of model.0.weight is a tuple"),
        (lambda metadata: _of_first(metadata, properties=None), "no attribute 'dtype'"),
        (lambda metadata: _of_first(metadata, chunks=[7]), "no attribute 'offsets'"),
        (lambda metadata: _placed(metadata, relative_path="../secret"), "'../secret', which is not in its folder"),
        (lambda metadata: _placed(metadata, relative_path="/etc/passwd"), "'/etc/passwd', which is not in its folder"),
        (lambda metadata: _placed(metadata, relative_path=".."), "'..', which is not in its folder"),
        (lambda metadata: _placed(metadata, relative_path=None), "no attribute 'relative_path'"),
        (lambda metadata: _placed(metadata, offset=-1), "is at -1, of"),
        (lambda metadata: _placed(metadata, length=1.5), "of 1.5 bytes"),
    ],
)
def test_metadata_of_other_types_are_refused(
    whole: bytes, tmp_path: Path, change: Callable[[Metadata], object], words: str
) -> None:
    refused(tmp_path, pickle.dumps(_with(change)(pickle.loads(whole))), words)


def test_a_folder_without_metadata_and_metadata_that_are_a_folder_are_said(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"\.metadata: no checkpoint that can be read: No such file") as caught:
        look_at_dcp(tmp_path)
    assert caught.value.kind == "missing"
    (tmp_path / METADATA).mkdir()
    with pytest.raises(StoreError, match=r"\.metadata: no checkpoint that can be read: Is a directory"):
        look_at_dcp(tmp_path)


def test_data_that_are_gone_or_damaged_are_said(tmp_path: Path) -> None:
    model = nn.Linear(3, 4)
    dcp.save({"model": model.state_dict()}, checkpoint_id=tmp_path, no_dist=True)
    source = look_at_dcp(tmp_path)
    tensor = source.table[0].tensors[0]
    (data,) = tmp_path.glob("*.distcp")
    data.write_bytes(b"garbage")
    with pytest.raises(StoreError, match=rf"model\.{tensor.name} cannot be read: rank 0: \w+") as caught:
        source.weights(tensor)
    assert caught.value.kind == "corrupt"
    assert "Traceback" not in str(caught.value)
    data.unlink()
    with pytest.raises(StoreError, match=r"No such file.*distcp"):
        source.weights(tensor)
