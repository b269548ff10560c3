"""A Verilated module and its bench as a library whose functions raise what the hardware's assertions say."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from catchment.rtl.verilate import RtlError, build


class RtlFailedError(RtlError):
    """An assertion of the hardware failed, or it said `$fatal`, `$stop` or `$finish`; that model stands still now.

    Attributes:
        file: the source. line: in it, from 1.
        said: what the hardware said of it, with the instance's path where it says one.
    """

    def __init__(self, file: Path, line: int, said: str) -> None:
        super().__init__(f"{file.stem}: {file}:{line}: {said}")
        self.file, self.line, self.said = file, line, said

    @property
    def module(self) -> str:
        """The name of the module: a file has one, and is named after it."""
        return self.file.stem


class RtlLibrary(ctypes.CDLL):
    """A library of `build`; each of its functions raises `RtlFailedError` with the first failure since the last call.

    Failures in clocks that another library runs are raised by the next function that is called here.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        self._failure = super().__getitem__("catchment_rtl_failure")

    def __getitem__(self, name: str) -> Any:
        function = super().__getitem__(name)
        function.errcheck = self._check
        return function

    def _check(self, result: Any, _function: Any, _arguments: tuple[Any, ...]) -> Any:
        file, line, said = ctypes.c_char_p(), ctypes.c_uint32(), ctypes.c_char_p()
        if self._failure(ctypes.byref(file), ctypes.byref(line), ctypes.byref(said)):
            raise RtlFailedError(Path((file.value or b"").decode()), line.value, (said.value or b"").decode().strip())
        return result


def load(
    top: str,
    bench: Path,
    parameters: Mapping[str, int] | None = None,
    *,
    waves: bool = False,
    instead: Sequence[Path] = (),
    timing: bool = False,
) -> RtlLibrary:
    """Build the module `top` with a C++ bench, as `catchment.rtl.verilate.build` does, and load it.

    Raises:
        RtlError: it cannot be built.
    """
    return RtlLibrary(build(top, bench, parameters, waves=waves, instead=instead, timing=timing))
