"""Files of samples: what is read, and that every mistake is named with its line."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
import random
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from catchment.host.glm import GlmError, Samples, read_samples, reader


def _write(folder: Path, text: str | bytes, name: str = "data.libsvm") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_what_scikit_learn_writes(tmp_path: Path, rng: random.Random) -> None:
    draw = np.random.default_rng(rng.randrange(1 << 32))
    matrix = sp.random_array((40, 90), density=0.1, rng=draw, format="csr")
    matrix.data = draw.standard_normal(matrix.nnz) * 10.0 ** draw.integers(-9, 9, matrix.nnz)
    labels = draw.choice([-1.0, 1.0], 40)
    path = tmp_path / "data.libsvm"
    dump_svmlight_file(matrix, labels, str(path), zero_based=False)
    wanted, wanted_labels = load_svmlight_file(str(path), n_features=90, zero_based=False)
    for packed, pack in (("", bytes), (".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)):
        samples = read_samples(_write(tmp_path, pack(path.read_bytes()), f"data.libsvm{packed}"), features=90)
        assert (samples.matrix != sp.csr_array(wanted)).nnz == 0
        assert np.array_equal(samples.labels, wanted_labels)


def test_the_format_s_freedoms(tmp_path: Path) -> None:
    text = "# made by hand\n\n+1 qid:3 1:0.5\t3:-2e1 # a comment\r\n-1\n1.5 2:+.25 4:0 1000000:1e-400\n2 7:1"
    samples = read_samples(_write(tmp_path, text))
    assert samples.labels.tolist() == [1.0, -1.0, 1.5, 2.0]
    assert samples.matrix.shape == (4, 7)  # a zero is not stored, whatever its index
    assert samples.matrix.toarray()[0, [0, 2]].tolist() == [0.5, -20.0]
    assert samples.matrix.toarray()[2, 1] == 0.25
    zero_based = read_samples(_write(tmp_path, "1 0:3 2:4\n"), zero_based=True)
    assert zero_based.matrix.toarray().tolist() == [[3.0, 0.0, 4.0]]


def test_a_byte_order_mark_is_no_part_of_the_first_label(tmp_path: Path) -> None:
    samples = read_samples(_write(tmp_path, b"\xef\xbb\xbf-1 1:3\n1 2:4\n"))
    assert samples.labels.tolist() == [-1.0, 1.0]
    assert samples.matrix.toarray().tolist() == [[3.0, 0.0], [0.0, 4.0]]


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("1 1:1\nx 1:1\n", 2, "'x' is no label"),
        ("1 1:1\n\n1 2:3 1:4\n", 3, "index 1 after 2: indices must rise"),
        ("1 2:3 2:4\n", 1, "index 2 after 2"),
        ("1 1:1\n1 0:1\n", 2, r"index 0 is not in 1 to 67108864; with --zero-based"),
        ("1 -3:1\n", 1, "index -3 is not in"),
        ("1 99999999999:1\n", 1, "index 99999999999 is not in"),
        ("1 67108864:1\n0 67108865:1\n", 2, "index 67108865 is not in 1 to 67108864; no more fit 32 workers"),
        ("1 3\n", 1, "'3' is no index:value pair"),
        ("1 3:\n", 1, "'3:' has no finite number"),
        ("1 a:3\n", 1, "'a:3' has no integer"),
        ("1 1:nan\n", 1, "has no finite number"),
        ("1 1:1e999\n", 1, "has no finite number"),
        ("inf 1:1\n", 1, "'inf' is no label"),
        ("1 1:1x\n", 1, "has no finite number"),
        ("1 1:0x10\n", 1, "has no finite number"),
        ("1 ++1:1\n", 1, "has no integer"),
        ("1,2 1:1\n", 1, "is no label"),
        (b"1 1:\xff\x00\x1b[31m\n", 1, r"'1:\?\?\?\[31m' has no"),
        ("1 1:1\n" * 5000 + "1 1:1 " + "9" * 500 + ":\n", 5001, r"\.\.\.' has no integer"),
    ],
)
def test_mistakes_are_named_with_their_line(tmp_path: Path, text: str | bytes, line: int, says: str) -> None:
    path = _write(tmp_path, text)
    with pytest.raises(GlmError, match=says) as found:
        read_samples(path)
    assert str(found.value).startswith(f"{path}:{line}: ")


def test_blocks_of_a_text_change_nothing(tmp_path: Path, rng: random.Random, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is read in parts: lines across them, and the line of a mistake in a later one."""
    lines = [f"{k} {k % 5 + 1}:{k / 7} 9:{'1' * rng.randrange(1, 60)}" for k in range(30)] + ["# nothing", "", "3"]
    path = _write(tmp_path, "\n".join(lines) + rng.choice(["", "\n", "\r\n"]))
    whole = read_samples(path)
    for size in (1, rng.randrange(2, 30), rng.randrange(30, 3000)):
        monkeypatch.setattr(reader, "_BLOCK_BYTES", size)
        samples = read_samples(path)
        assert (samples.matrix != whole.matrix).nnz == 0 and np.array_equal(samples.labels, whole.labels)
        with pytest.raises(GlmError, match=r":34: '1:x' has no finite number"):
            read_samples(_write(tmp_path, "\n".join([*lines, "1 1:x", "1 1:1"]), "bad.libsvm"))


def test_random_bytes_are_refused_or_read(tmp_path: Path, rng: random.Random) -> None:
    alphabet = b"0123456789:.+-e \n#xnaif\x00\xff"
    read = 0
    for number in range(400):
        # a short one in four: of those many can be read
        length = rng.randrange(60 if number % 4 else 4)
        path = _write(tmp_path, bytes(rng.choice(alphabet) for _ in range(length)), f"{number}.libsvm")
        with contextlib.suppress(GlmError):
            samples = read_samples(path, features=1 << 20)
            read += 1
            assert np.isfinite(samples.matrix.data).all() and np.isfinite(samples.labels).all()
    assert read > 0


@pytest.mark.parametrize(
    ("text", "says"),
    [("", "no samples"), ("# nothing\n\n", "no samples"), ("1\n2\n", "no sample has a feature")],
)
def test_files_without_samples(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(GlmError, match=says):
        read_samples(_write(tmp_path, text))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(GlmError, match="No such file"):
        read_samples(tmp_path / "none.libsvm")
    with pytest.raises(GlmError, match="directory"):
        read_samples(tmp_path)
    for name in ("data.libsvm.gz", "data.libsvm.bz2", "data.libsvm.xz", "data.npz"):
        with pytest.raises(GlmError, match=name):
            read_samples(_write(tmp_path, b"not what the name says", name))
    with pytest.raises(GlmError, match=r"data\.libsvm\.gz"):
        read_samples(_write(tmp_path, gzip.compress(b"1 1:1\n" * 1000)[:-20], "data.libsvm.gz"))
    with pytest.raises(GlmError, match=r":1: index 9 is not in 1 to 5; a model has"):
        read_samples(_write(tmp_path, "1 9:1\n"), features=5)
    with pytest.raises(GlmError, match="labels of their own"):
        read_samples(_write(tmp_path, "1 9:1\n"), labels=tmp_path / "y.npy")


def test_matrices_that_scipy_saved(tmp_path: Path) -> None:
    matrix = sp.csr_array(np.array([[0.0, 1.0], [2.0, 0.0], [0.0, 0.0]]))
    path, labels = tmp_path / "x.npz", tmp_path / "y.npy"
    sp.save_npz(path, matrix)
    with pytest.raises(GlmError, match="no labels in it"):
        read_samples(path)
    np.save(labels, np.array([1, 0, 1]))
    samples = read_samples(path, labels=labels)
    assert (samples.matrix != matrix).nnz == 0 and samples.labels.tolist() == [1.0, 0.0, 1.0]
    assert not read_samples(path, unlabelled=True).labelled
    np.save(labels, np.array([1, 0]))
    with pytest.raises(GlmError, match="3 samples with labels of shape"):
        read_samples(path, labels=labels)
    np.save(labels, np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(GlmError, match=r"y\.npy"):
        read_samples(path, labels=labels)


@pytest.mark.parametrize("damage", [{"indices": [0, 99, 2]}, {"indptr": [0, 1, 9, 3]}, {"indptr": [0, 2, 1, 3]}])
def test_a_matrix_s_indices_are_not_trusted(tmp_path: Path, damage: dict[str, list[int]]) -> None:
    good = {"indices": [0, 1, 2], "indptr": [0, 1, 2, 3]}
    path = tmp_path / "x.npz"
    arrays = {name: np.array(value, np.int32) for name, value in {**good, **damage}.items()}
    np.savez(path, **arrays, data=np.ones(3), shape=(3, 3), format=b"csr", labels=np.array([0, 1, 0]))
    with pytest.raises(GlmError, match=r"x\.npz: "):
        read_samples(path)


@pytest.mark.parametrize(
    ("matrix", "labels", "says"),
    [
        ([[1.0, np.nan]], [1], "sample 0 has a feature that is not finite"),
        ([[1.0], [np.inf]], [1, 2], "sample 1 has"),
        ([[1.0]], [np.nan], "label 0 is not finite"),
        ([[1.0]], [1, 2], "1 samples with labels of shape"),
        ([["a"]], [1], "no matrix of numbers"),
        ([[1.0]], ["a"], "labels that are no numbers"),
        (np.zeros((0, 3)), [], "features of shape"),
        (np.zeros((2, 2, 2)), [1, 2], "matrix|shape"),
    ],
)
def test_arrays_that_are_refused(matrix: object, labels: object, says: str) -> None:
    with pytest.raises(GlmError, match=says):
        Samples.of(matrix, labels)
