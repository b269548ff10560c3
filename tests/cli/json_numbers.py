"""Numbers are numbers in what `--json` prints, so that scripts compare and add them."""

from __future__ import annotations

import json
import re
from typing import Any

_NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?|0x[0-9a-fA-F]+|nan|inf|None|True|False")


def quoted_numbers(value: Any, path: str = "") -> list[str]:
    """The places in a JSON value at which a string is all number, or a word that JSON has itself."""
    match value:
        case dict():
            return [place for key, one in value.items() for place in quoted_numbers(one, f"{path}.{key}")]
        case list():
            return [place for number, one in enumerate(value) for place in quoted_numbers(one, f"{path}[{number}]")]
        case str() if _NUMBER.fullmatch(value):
            return [f"{path}: {value!r}"]
    return []


def _read(text: str) -> Any:
    return json.loads(text, parse_constant=_refuse)


def _refuse(word: str) -> None:
    raise AssertionError(f"{word} is no JSON")


def check(printed: str) -> None:
    """Check what a verb has printed: one JSON value, or one a line."""
    try:
        values = [_read(printed)]
    except ValueError:
        values = [_read(line) for line in printed.splitlines() if line.strip()]
    quoted = quoted_numbers(values)
    assert not quoted, f"numbers as strings: {', '.join(quoted)}"
