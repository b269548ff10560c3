"""Tests where arrays lie: the fast way and the one that says what is refused find the same."""

from __future__ import annotations

import array
import ctypes
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from catchment.host import EndpointError, _native
from catchment.host.transport import buffers
from catchment.host.transport.buffers import Buffer, bytes_of, lanes_of
from catchment.wire.generated.constants import DataType


class Vector(np.ndarray[Any, Any]):
    """An array that may have attributes."""


class Tensorlike(Vector):
    """What has `data_ptr` counts as a tensor, whatever else it is."""

    data_ptr = property(lambda self: self.ctypes.data)


class Announced:
    """An array that tells only numpy where it is."""

    def __init__(self) -> None:
        self.__array_interface__ = np.zeros(4, np.float32).__array_interface__


def read_only(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    values.flags.writeable = False
    return values


USUAL: dict[str, tuple[Callable[[], Any], DataType, int]] = {
    "fp32": (lambda: np.arange(7, dtype=np.float32), DataType.FP32, 7),
    "fp16": (lambda: np.arange(7, dtype=np.float16), DataType.FP16, 7),
    "words of bf16": (lambda: np.arange(7, dtype=np.uint16), DataType.BF16, 7),
    "int32": (lambda: np.arange(7, dtype=np.int32), DataType.INT32, 7),
    "one number": (lambda: np.array(3, np.float32), DataType.FP32, 1),
    "a matrix": (lambda: np.zeros((3, 5), np.float32), DataType.FP32, 15),
    "rows": (lambda: np.zeros((6, 5), np.int32)[2:4], DataType.INT32, 10),
    "a subclass": (lambda: np.zeros(4, np.float16).view(Vector), DataType.FP16, 4),
    "a column that is all": (lambda: np.zeros((4, 1), np.float32)[:, 0], DataType.FP32, 4),
    "array.array": (lambda: array.array("f", [1.0, 2.0]), DataType.FP32, 2),
    "a memoryview": (lambda: memoryview(bytearray(12)).cast("i"), DataType.INT32, 3),
    "ctypes": (ctypes.c_int32 * 5, DataType.INT32, 5),
    "empty": (lambda: np.zeros(0, np.float32), DataType.FP32, 0),
    "empty rows": (lambda: np.zeros((0, 3), np.int32), DataType.INT32, 0),
}
ODD: dict[str, Callable[[], Any]] = {
    "every other": lambda: np.zeros(8, np.float32)[::2],
    "backwards": lambda: np.zeros(8, np.float32)[::-1],
    "columns": lambda: np.zeros((4, 4), np.int32)[:, 1:3],
    "by columns": lambda: np.asfortranarray(np.zeros((4, 4), np.float32)),
    "spread out": lambda: np.broadcast_to(np.zeros(1, np.float32), (4,)),
    "read-only": lambda: read_only(np.zeros(4, np.float32)),
    "read-only bytes": lambda: memoryview(bytes(8)).cast("f"),
    "of both byte orders": lambda: np.zeros(4, ">f4"),
    "fp64": lambda: np.zeros(4, np.float64),
    "int64": lambda: np.zeros(4, np.int64),
    "uint32": lambda: np.zeros(4, np.uint32),
    "int16": lambda: np.zeros(4, np.int16),
    "booleans": lambda: np.zeros(4, np.bool_),
    "complex": lambda: np.zeros(4, np.complex64),
    "records": lambda: np.zeros(4, [("a", np.float32)]),
    "objects": lambda: np.zeros(4, object),
    "dates": lambda: np.zeros(4, "datetime64[s]"),
    "words": lambda: np.array(["ab", "c"]),
    "bytes": lambda: bytearray(8),
    "a list": lambda: [1.0, 2.0],
    "a text": lambda: "text",
    "nothing": lambda: None,
    "a class": lambda: np.ndarray,
    "__array_interface__ alone": Announced,
    "a tensor of its own kind": lambda: np.zeros(4, np.float32).view(Tensorlike),
    "a memoryview that was given back": lambda: given_back(memoryview(bytearray(8)).cast("f")),
}


def given_back(view: memoryview) -> memoryview:
    view.release()
    return view


def found(given: Any, writable: bool, empty: bool) -> tuple[Any, ...]:
    """All that is told about an array, or all that is said against it."""
    try:
        buffer = lanes_of(given, writable=writable, empty=empty)
    except EndpointError as error:
        return ("refused", str(error), error.kind, error.hint)
    except Exception as error:
        return (type(error), str(error))
    assert isinstance(buffer, Buffer) and isinstance(buffer.dtype, DataType)
    return (buffer.address, buffer.elements, buffer.dtype)


class _Nowhere:
    """Finds nothing, so that all goes the long way."""

    def find(self, given: object, writable: bool) -> None:
        return None


@pytest.fixture
def the_long_way(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Any, ...]]:
    def find(*asked: Any) -> tuple[Any, ...]:
        with monkeypatch.context() as patched:
            for places in ("_places", "_places_of_bytes"):
                patched.setattr(buffers, places, _Nowhere)
            return found(*asked)

    return find


def both(the_long_way: Callable[..., tuple[Any, ...]], make: Callable[[], Any]) -> list[tuple[Any, ...]]:
    """What is found of an array, which has to be the same both ways however it is asked for."""
    told = []
    for writable in (True, False):
        for empty in (True, False):
            given = make()
            told.append(found(given, writable, empty))
            assert told[-1] == the_long_way(given, writable, empty)
    return told


@pytest.mark.parametrize("name", USUAL)
def test_both_ways_find_the_same(name: str, the_long_way: Callable[..., tuple[Any, ...]]) -> None:
    make, dtype, elements = USUAL[name]
    for told in both(the_long_way, make):
        assert told[1:] == (elements, dtype) or (elements == 0 and "an empty buffer" in told[1])
    given = make()
    quick = buffers._places().find(given, True)
    assert quick is not None and quick.address == np.asarray(given).ctypes.data


SHAPES = [(3, 5), (0, 5), ()]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "dtype", [*"?bBhHiIlLqQefdg", ">i4", ">f8", "c8", "c16", "S3", "V7", [("O", np.int8), ("b", np.float64)]]
)
def test_bytes_are_those_of_all_elements(dtype: Any, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    array = np.zeros(shape, dtype)
    wanted = array.nbytes, DataType.BYTES
    quick = bytes_of(array, writable=True, empty=True)
    monkeypatch.setattr(buffers, "_places_of_bytes", _Nowhere)
    assert quick[2:] == wanted and bytes_of(array, writable=True, empty=True)[1:] == quick[1:]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["O", [("a", object)], [("a", [("b", "i4"), ("c", object)])]])
def test_addresses_of_objects_are_no_bytes(dtype: Any, shape: tuple[int, ...]) -> None:
    with pytest.raises(EndpointError, match="of Python objects: they are addresses in this process"):
        bytes_of(np.zeros(shape, dtype), writable=True, empty=True)


def test_bytes_of_tensors_of_all_types() -> None:
    torch = pytest.importorskip("torch")
    for dtype in (torch.bool, torch.uint8, torch.int64, torch.float64, torch.bfloat16, torch.complex128):
        tensor = torch.zeros(3, 4, dtype=dtype)
        for _ in range(2):  # at first the type is not known
            assert bytes_of(tensor, writable=True)[1:] == (tensor.data_ptr(), tensor.nbytes, DataType.BYTES)
        for wrong, words in ((tensor.t(), "not contiguous"), (tensor.to("meta"), "on meta")):
            with pytest.raises(EndpointError, match=words):
                bytes_of(wrong, writable=True)


def test_a_conjugate_that_is_not_made_yet_is_no_bytes() -> None:
    """What lies there is the number itself, which the other ranks would get."""
    torch = pytest.importorskip("torch")
    number = torch.tensor([1 + 2j, 3 - 1j])
    for _ in range(2):
        assert bytes_of(number, writable=True)[1:] == (number.data_ptr(), number.nbytes, DataType.BYTES)
        with pytest.raises(EndpointError, match=r"lies there as its conjugate: call \.resolve_conj\(\)"):
            bytes_of(number.conj(), writable=True)
    assert bytes_of(number.conj().resolve_conj(), writable=True).elements == number.nbytes


@pytest.mark.parametrize("name", ODD)
def test_both_ways_refuse_the_same(name: str, the_long_way: Callable[..., tuple[Any, ...]]) -> None:
    told = both(the_long_way, ODD[name])
    readable = name.startswith("read-only")
    assert [isinstance(each[0], int) for each in told] == [False, False, readable, readable]


def test_bfloat16_of_numpy(the_long_way: Callable[..., tuple[Any, ...]]) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    assert {told[1:] for told in both(the_long_way, lambda: np.zeros(5, ml_dtypes.bfloat16))} == {(5, DataType.BF16)}


def test_torch_tensors(the_long_way: Callable[..., tuple[Any, ...]]) -> None:
    torch = pytest.importorskip("torch")
    dtypes = {
        torch.float32: DataType.FP32, torch.float16: DataType.FP16, torch.bfloat16: DataType.BF16,
        torch.int32: DataType.INT32,
    }  # fmt: skip
    for dtype, wanted in dtypes.items():
        for tensor in (torch.ones(6, dtype=dtype), torch.ones(2, 4, 3, dtype=dtype)[1:, :2]):
            told = both(the_long_way, lambda tensor=tensor: tensor)
            assert set(told) == {(tensor.data_ptr(), 6, wanted)}
            quick = buffers._places().find(tensor, True)
            assert quick is not None and quick.owner is tensor and quick.dtype is wanted
    weights = torch.nn.Parameter(torch.ones(3))
    assert set(both(the_long_way, lambda: weights)) == {(weights.data_ptr(), 3, DataType.FP32)}


def test_torch_tensors_that_are_refused(the_long_way: Callable[..., tuple[Any, ...]]) -> None:
    torch = pytest.importorskip("torch")
    for complaint, make in {
        "on meta": lambda: torch.ones(3, device="meta"),
        "complex64": lambda: torch.ones(3, dtype=torch.complex64).conj(),
        "float64": lambda: torch.ones(3, dtype=torch.float64),
        "not contiguous": lambda: torch.ones(4, 4).t()[:2],
        "": lambda: torch.ones(3).to_sparse(),
    }.items():
        for told in both(the_long_way, make):
            assert not isinstance(told[0], int) and complaint in told[1]


def test_a_place_keeps_its_array_and_nothing_else_does() -> None:
    given = np.zeros(4, np.float32)
    before = sys.getrefcount(given)
    place = lanes_of(given, writable=True)
    assert sys.getrefcount(given) > before
    with pytest.raises(ValueError, match=r"references"):
        given.resize(400)
    del place
    for name in ("every other", "read-only"):
        odd = ODD[name]()
        held = sys.getrefcount(odd)
        for _ in range(100):
            assert buffers._places().find(odd, True) is None
        assert sys.getrefcount(odd) == held
    assert sys.getrefcount(given) == before
    types = sys.getrefcount(DataType.FP32)
    for _ in range(1000):
        lanes_of(given, writable=True)
    assert sys.getrefcount(DataType.FP32) < types + 100


def test_an_interrupt_while_a_place_is_looked_for_is_not_swallowed() -> None:
    class Interrupted(Vector):
        @property
        def data_ptr(self) -> int:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        buffers._places().find(np.zeros(4, np.float32).view(Interrupted), True)


@pytest.mark.parametrize(
    "arguments",
    [
        (), (int, {}, "data_ptr", {}), (Buffer, {}, 5, {}), (Buffer, [], "data_ptr", {}), (Buffer, {}, "data_ptr", []),
        (Buffer, {"f": 1}, "data_ptr", {}), (Buffer, {("ff", 4): 1}, "data_ptr", {}),
        (Buffer, {("é", 4): 1}, "data_ptr", {}),
    ],
)  # fmt: skip
def test_places_of_nonsense(arguments: tuple[Any, ...]) -> None:
    with pytest.raises((TypeError, ValueError)):
        _native.Places(*arguments)
    with pytest.raises(TypeError):
        buffers._places().find(np.zeros(4, np.float32))  # type: ignore[call-arg]
