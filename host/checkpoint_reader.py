"""Reads checkpoints of torch.distributed.checkpoint (DCP) without executing anything that is in them.

The `.metadata` of such a checkpoint is a pickle, and torch's own reader calls whatever it names. Here it may name the
classes that torch writes into it, and nothing else; what is in the data files is read as weights only.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Final, final

import torch
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner
from torch.distributed.checkpoint.filesystem import FileSystemReader
from torch.distributed.checkpoint.metadata import BytesStorageMetadata, Metadata, MetadataIndex, TensorStorageMetadata
from torch.distributed.checkpoint.planner import ReadItem

METADATA: Final = ".metadata"
"""The file by which a folder is known as a checkpoint."""

_TORCH: Final = "torch.distributed.checkpoint."
_TAKEN: Final = {
    (f"{_TORCH}filesystem", "_StorageInfo"),
    *(
        (f"{_TORCH}metadata", name)
        for name in (
            "BytesStorageMetadata",
            "ChunkStorageMetadata",
            "Metadata",
            "MetadataIndex",
            "StorageMeta",
            "TensorProperties",
            "TensorStorageMetadata",
            "_MEM_FORMAT_ENCODING",
        )
    ),
    *((module, name) for module in ("pathlib", "pathlib._local") for name in ("Path", "PosixPath", "PurePosixPath")),
    ("collections", "OrderedDict"),
    ("torch", "Size"),
    ("torch.serialization", "_get_layout"),
}
"""What `.metadata` may name, besides torch's types of elements."""


class CheckpointError(ValueError):
    """The metadata of a checkpoint is damaged, or names what it may not; says which file."""


@final
class CheckpointReader(FileSystemReader):
    """torch's reader of a folder, whose `.metadata` is looked at before it is believed."""

    def __init__(self, folder: Path, metadata: Metadata | None = None) -> None:
        """`metadata`: what a reader of this folder has read before."""
        super().__init__(folder)
        self._metadata = metadata

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """What the checkpoint holds.

        Raises:
            CheckpointError: the file is damaged, or is no metadata of a checkpoint.
            OSError: it cannot be read.
        """
        if self._metadata is not None:
            return self._metadata
        path = Path(self._get_metadata_path(kwargs.get("rank")))
        raw = path.read_bytes()
        try:
            metadata = _Unpickler(io.BytesIO(raw)).load()
            _check(metadata)
        except Exception as error:  # a pickle of garbage raises anything
            raise CheckpointError(
                f"{path}: no metadata of a checkpoint ({type(error).__name__}: {error}): restore it from a copy, or "
                "take another checkpoint"
            ) from None
        checked: Metadata = metadata
        return checked


@final
class WeightsOnlyPlanner(DefaultLoadPlanner):
    """Loads into a flat dict, and takes of what are no tensors only what `torch.load(weights_only=True)` takes."""

    def __init__(self) -> None:
        super().__init__(flatten_state_dict=False)

    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        """Take a value of another kind than a tensor."""
        name = read_item.dest_index.fqn
        self.state_dict[name] = self.original_state_dict[name] = torch.load(value, weights_only=True)


def reasons(error: CheckpointException) -> str:
    """What each rank has said, in one line."""
    failures = ((rank, failure[0]) for rank, failure in sorted(error.failures.items()))
    said = (f"rank {rank}: {str(failure) or type(failure).__name__}" for rank, failure in failures)
    return "; ".join(" ".join(one.split()) for one in said)


_BUILD: Final[Callable[[Any], None]] = pickle._Unpickler.dispatch[pickle.BUILD[0]]


class _Unpickler(pickle._Unpickler):
    """Unpickles objects of the classes that torch writes into `.metadata`.

    The one in Python: that in C allocates as many places as a damaged byte names, and lets a pickle change classes.
    """

    stack: list[Any]
    dispatch: ClassVar[dict[int, Callable[[Any], None]]] = dict(pickle._Unpickler.dispatch)

    def find_class(self, module_name: str, global_name: str) -> Any:
        """A class that the pickle names.

        Raises:
            UnpicklingError: it may not.
        """
        of_elements = module_name == "torch" and isinstance(getattr(torch, global_name, None), torch.dtype)
        if not of_elements and (module_name, global_name) not in _TAKEN:
            raise pickle.UnpicklingError(f"it names {module_name}.{global_name}, which is not executed")
        return super().find_class(module_name, global_name)

    def load_build(self) -> None:
        """Give an object its state.

        Raises:
            UnpicklingError: it is a class.
        """
        if isinstance(self.stack[-2], type):
            raise pickle.UnpicklingError(f"it changes {self.stack[-2].__name__}")
        _BUILD(self)

    dispatch[pickle.BUILD[0]] = load_build


def _check(metadata: Any) -> None:
    """Make sure that these are the metadata of a checkpoint in one folder.

    Raises:
        TypeError, AttributeError: something has another type.
        ValueError: it names a file elsewhere.
    """
    if not isinstance(metadata, Metadata):
        raise TypeError(f"it is a {type(metadata).__name__}")
    for name, entry in _entries(metadata.state_dict_metadata, "state_dict_metadata"):
        _check_type(name, str, "a key")
        _check_type(entry, TensorStorageMetadata | BytesStorageMetadata, f"{name}")
        if isinstance(entry, TensorStorageMetadata):
            _check_type(entry.size, torch.Size, f"the size of {name}")
            _check_type(entry.properties.dtype, torch.dtype, f"the type of {name}")
            for chunk in entry.chunks:
                _check_type(chunk.offsets, torch.Size, f"the place of a part of {name}")
                _check_type(chunk.sizes, torch.Size, f"the size of a part of {name}")
    for index, place in _entries(metadata.storage_data, "storage_data"):
        _check_type(index, MetadataIndex, "a key of storage_data")
        _check_type(place.relative_path, str, f"the file of {index.fqn}")
        if place.relative_path in {"", ".."} or Path(place.relative_path).name != place.relative_path:
            raise ValueError(f"{index.fqn} is in {place.relative_path!r}, which is not in its folder")
        for number in (place.offset, place.length):
            if type(number) is not int or number < 0:
                raise ValueError(f"{index.fqn} is at {place.offset!r}, of {place.length!r} bytes")


def _entries(found: Any, what: str) -> Any:
    _check_type(found, dict, what)
    return found.items()


def _check_type(found: Any, wanted: Any, what: str) -> None:
    if not isinstance(found, wanted):
        raise TypeError(f"{what} is a {type(found).__name__}")
