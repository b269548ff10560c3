"""The check that every test of a verb with `--json` goes through."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from json_numbers import check, quoted_numbers

from catchment.cli.output import print_json


@pytest.mark.parametrize(
    ("value", "places"),
    [
        ({"port": 1, "lossy": "-", "name": "s1", "ip": "10.0.0.1", "mac": "02:00:00:00:00:01"}, []),
        ({"port": "1"}, [".port: '1'"]),
        ([{"seconds": [0.5, "1e-3"]}], ["[0].seconds[1]: '1e-3'"]),
        (
            {"a": {"b": "None"}, "c": "0x1f", "d": "-.5", "e": "v1.2", "f": ""},
            [".a.b: 'None'", ".c: '0x1f'", ".d: '-.5'"],
        ),
    ],
)
def test_quoted_numbers_are_found(value: Any, places: list[str]) -> None:
    assert quoted_numbers(value) == places


@pytest.mark.parametrize("printed", ['{"a": NaN}', '{"a": 1}\n{"a": -Infinity}\n'])
def test_words_that_json_does_not_have_are_found(printed: str) -> None:
    with pytest.raises(AssertionError, match="is no JSON"):
        check(printed)


def test_what_verbs_print_has_none(capsys: pytest.CaptureFixture[str]) -> None:
    print_json([{"ratio": math.nan, "bound": math.inf}])
    printed = capsys.readouterr().out
    check(printed)
    assert json.loads(printed) == [{"ratio": None, "bound": None}]


def test_each_line_is_checked() -> None:
    check('{"a": 1}\n{"a": 2}\n')
    with pytest.raises(AssertionError, match=r"numbers as strings: \[1\]\.a: '2'"):
        check('{"a": 1}\n{"a": "2"}\n')
