"""Reads samples from files: LIBSVM's text format, and sparse matrices that scipy saved."""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from catchment.host.given_numbers import is_whole
from catchment.host.glm.errors import GlmError
from catchment.host.glm.samples import Floats, Samples, rows_of
from catchment.wire.generated.glm_numbers import ENGINE_WEIGHTS, ENGINES_MAX, WORKERS_MAX

_OPENERS: dict[str, Callable[[Path], Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_DAMAGED = (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)
MOST_FEATURES = WORKERS_MAX * ENGINES_MAX * ENGINE_WEIGHTS
"""The most features that a file may have: a single index must not decide how much memory a model takes."""
_BLOCK_BYTES = 1 << 24

_Parsed = tuple[Floats, NDArray[np.int64], NDArray[np.int32], Floats]


def read_samples(
    path: Path,
    *,
    labels: Path | None = None,
    features: int | None = None,
    zero_based: bool = False,
    unlabelled: bool = False,
) -> Samples:
    """Samples of a file.

    Args:
        path: LIBSVM text (also .gz, .bz2, .xz), or an .npz of `scipy.sparse.save_npz`.
        labels: a .npy with the labels of an .npz; None when the .npz has an array ``labels`` of its own.
        features: how many there are; by default as many as the file names, up to MOST_FEATURES.
        zero_based: the text's first feature is 0, not 1.
        unlabelled: an .npz may be without labels.

    Raises:
        GlmError: it cannot be read; a mistake in the text is named with its line.
    """
    if not isinstance(path, Path) or not isinstance(labels, Path | None):
        raise GlmError(f"samples in {path!r}, labels in {labels!r}", "give the Path of a file")
    if features is not None and not is_whole(features, 1, MOST_FEATURES):
        raise GlmError(f"{features!r} features", f"give 1 to {MOST_FEATURES}")
    if path.suffix == ".npz":
        matrix, found = _read_npz(path, labels)
        matrix = _widened(matrix, features, path)
        if found is not None:
            return Samples.of(matrix, found)
        if unlabelled:
            return Samples(matrix, np.zeros(matrix.shape[0]), labelled=False)
        raise GlmError(f"{path}: no labels in it", "name a .npy file with --labels")
    if labels is not None:
        raise GlmError(f"{path}: labels of their own are for .npz files", "LIBSVM's lines begin with their labels")
    return _read_text(path, features, zero_based)


def _read_text(path: Path, features: int | None, zero_based: bool) -> Samples:
    from catchment.host import _glm  # noqa: PLC0415  the error for a missing build belongs to the first use

    most = MOST_FEATURES if features is None else features
    parts: list[_Parsed] = []
    lines = 0
    try:
        with _OPENERS.get(path.suffix, Path.open)(path, "rb") as file:
            for text in _blocks(file):
                try:
                    parts.append(_glm.parse_libsvm(text, 0 if zero_based else 1, most))
                except ValueError as error:
                    line, what = error.args
                    raise GlmError(f"{path}:{lines + line}: {what}{_index_hint(what, features)}") from None
                lines += text.count(b"\n")
    except _DAMAGED as error:
        raise GlmError(f"{path}: {_reason(error)}", "give a readable file") from None
    found, offsets, columns, values = _joined(parts)
    if not len(found):
        raise GlmError(f"{path}: no samples", "each line is a label and index:value pairs")
    width = int(columns.max()) + 1 if len(columns) else 0
    if width == 0 and features is None:
        raise GlmError(f"{path}: no sample has a feature that is not 0", "each line is a label and index:value pairs")
    matrix = sp.csr_array((values, columns, offsets), shape=(len(found), max(width, 1)))
    return Samples.of(_widened(matrix, features, path), found)


def _blocks(file: Any) -> Iterator[bytes]:
    """The text in parts that end where lines do, so that it is never held whole; without a byte order mark."""
    pieces = [file.read(len(codecs.BOM_UTF8)).removeprefix(codecs.BOM_UTF8)]
    while block := file.read(_BLOCK_BYTES):
        end = block.rfind(b"\n") + 1
        if end:
            yield b"".join([*pieces, block[:end]])
            pieces = []
        pieces.append(block[end:])
    yield b"".join(pieces)


def _joined(parts: list[_Parsed]) -> _Parsed:
    """Labels, rows' offsets, columns and values of all parts of a text."""
    labels, offsets, columns, values = zip(*parts, strict=True)
    before = np.cumsum([0, *(len(part) for part in columns)])
    ends = [part[1:] + first for part, first in zip(offsets, before, strict=False)]
    return np.concatenate(labels), np.concatenate([before[:1], *ends]), np.concatenate(columns), np.concatenate(values)


def _index_hint(what: str, features: int | None) -> str:
    """What to do about an index out of range."""
    if what.startswith("index 0 "):
        return "; with --zero-based the first is 0"
    if not what.startswith("index ") or "is not in" not in what or what.startswith("index -"):
        return ""
    if features is None:
        return f"; no more fit {WORKERS_MAX} workers"
    return "; a model has the features of the file it was trained on, or as many as --features said"


def _read_npz(path: Path, labels: Path | None) -> tuple[sp.csr_array, Floats | None]:
    try:
        if path.is_file() and not zipfile.is_zipfile(path):
            raise GlmError("it is no .npz file", "give what scipy.sparse.save_npz writes")
        matrix = rows_of(sp.load_npz(path))
        if labels is None:
            with np.load(path, allow_pickle=False) as arrays:
                return matrix, arrays.get("labels")
        return matrix, np.load(labels, allow_pickle=False)
    except GlmError as error:
        raise GlmError(f"{path}: {error.message}", error.hint) from None
    except (*_DAMAGED, ValueError, KeyError) as error:
        where = path if labels is None else f"{path} with {labels}"
        raise GlmError(f"{where}: {_reason(error)}", "give what scipy.sparse.save_npz and numpy.save write") from None


def _widened(matrix: sp.csr_array, features: int | None, path: Path) -> sp.csr_array:
    if features is None:
        return matrix
    if matrix.shape[1] > features:
        raise GlmError(
            f"{path}: {matrix.shape[1]} features, not {features}",
            "a model has the features of the file it was trained on, or as many as --features said",
        )
    return sp.csr_array((matrix.data, matrix.indices, matrix.indptr), shape=(matrix.shape[0], features))


def _reason(error: BaseException) -> str:
    return (error.strerror if isinstance(error, OSError) and error.strerror else str(error)) or type(error).__name__
