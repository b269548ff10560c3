"""JSON for others' programs has no words that JSON does not have."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from catchment.json_text import json_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (math.nan, "null"),
        ({"a": [1.5, -math.inf], "b": ({"c": math.inf},)}, '{"a": [1.5, null], "b": [{"c": null}]}'),
        ([True, None, 3, "NaN", 1e308, -0.0], '[true, null, 3, "NaN", 1e+308, -0.0]'),
        ([], "[]"),
    ],
)
def test_floats_that_are_not_finite_are_null(value: object, text: str) -> None:
    assert json_text(value) == text


def test_other_types_become_what_the_default_makes_of_them() -> None:
    assert json.loads(json_text({"path": Path("a/b")}, indent=1, default=str)) == {"path": "a/b"}
    with pytest.raises(TypeError, match="not JSON serializable"):
        json_text({1, 2})
