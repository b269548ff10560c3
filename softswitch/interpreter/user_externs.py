"""Externs of a user's own: calls into the Python that the user brings (docs/howto/user-externs.md)."""

from __future__ import annotations

import importlib.util
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from catchment.softswitch.compiler import ir
from catchment.softswitch.compiler.source import Location
from catchment.softswitch.compiler.types import BoolType, Type, VoidType
from catchment.softswitch.interpreter.arithmetic import wrapped
from catchment.softswitch.interpreter.errors import InterpreterError
from catchment.softswitch.interpreter.values import Value


class UserExterns:
    """The functions and classes of a Python file, by the names of the externs that they implement."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._module = _load(file) if file is not None else None

    def find(self, name: str, loc: Location) -> Any:
        """The function or class called `name`.

        Raises:
            InterpreterError: there is none.
        """
        found = getattr(self._module, name, None)
        if found is None:
            where = "no file implements it (--externs FILE.py, docs/howto/user-externs.md)"
            raise InterpreterError(f"{loc}: extern {name}: {where if self._file is None else f'{self._file} has none'}")
        return found

    def make(self, decl: ir.InstanceDecl) -> Any:
        """An object of an extern type, made of its constructor arguments."""
        assert decl.type is not None, "an extern object has an extern type"
        arguments = []
        for argument in decl.args:
            if isinstance(argument, ir.Literal):
                arguments.append(argument.value)
            elif isinstance(argument, ir.EnumValue):
                arguments.append(argument.ordinal)
            else:
                raise InterpreterError(
                    f"{argument.loc}: a constructor argument that is no number, bool, string or enum"
                )
        return self.call(self.find(decl.type.name, decl.loc), arguments, decl.loc)

    def call(self, function: Callable[..., Any], arguments: Sequence[Any], loc: Location) -> Any:
        """What a function of the file returns, called from a place in the program.

        Raises:
            InterpreterError: it raises something, or ends the program.
        """
        try:
            return function(*arguments)
        except (Exception, SystemExit) as error:
            assert self._file is not None, "functions are of a file"
            raise InterpreterError(f"{loc}: {_where(self._file, error)}: {_what(error)}") from error


def _load(file: Path) -> ModuleType:
    """The file as a module.

    Raises:
        InterpreterError: it cannot be read, is no Python, or raises something or ends the program as it is imported.
    """
    spec = importlib.util.spec_from_file_location(f"externs_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise InterpreterError(f"{file}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise InterpreterError(f"{_where(file, error)}: {_what(error)}") from error
    return module


def _where(file: Path, error: BaseException) -> str:
    """The file, and the last of its lines that ran before the error."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)]
    return f"{file}:{lines[-1]}" if lines else str(file)


def _what(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror is not None:
        return error.strerror
    return f"{type(error).__name__}: {error}"


def outputs(call: ir.ExternCall, returned: Any) -> list[Value]:
    """What a user's function returned, as the call's values: its result unless void, then `out` and `inout` parameters.

    Raises:
        InterpreterError: there are more or fewer, or one is no number.
    """
    wanted: list[Type] = [] if isinstance(call.type, VoidType) else [call.type]
    wanted += [p.type for p in call.params if p.direction in (ir.Direction.OUT, ir.Direction.INOUT)]
    given = list(returned) if isinstance(returned, tuple) else [] if returned is None else [returned]
    if len(given) != len(wanted) or not all(isinstance(value, int) for value in given):
        message = f"extern {call.method} returned {returned!r}: {len(wanted)} numbers are due"
        raise InterpreterError(f"{call.loc}: {message}")
    return [bool(v) if isinstance(t, BoolType) else wrapped(int(v), t) for v, t in zip(given, wanted, strict=True)]
