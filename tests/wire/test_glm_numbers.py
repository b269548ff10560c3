"""The numbers of a linear model's training: the same in every language, and mistakes in their description are named."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from catchment.wire import glm
from catchment.wire.emit import glm as emit
from catchment.wire.generate import OUTPUT
from catchment.wire.generated import glm_numbers


def test_the_table_is_the_logistic_function() -> None:
    assert len(glm_numbers.SIGMOID) == glm_numbers.SIGMOID_SEGMENTS + 1
    for i, value in enumerate(glm_numbers.SIGMOID):
        assert abs(value / glm_numbers.SIGMOID_ONE - 1 / (1 + math.exp(-i / 16))) <= 0.5 / glm_numbers.SIGMOID_ONE


def test_limits_have_the_widths_that_stand_behind_them() -> None:
    numbers = glm.load()
    for limit, width, bits in (("weight", "weight", 32), ("activation", "activation", 27), ("derivative", "scale", 20)):
        assert numbers[f"{width}_bits"] == bits
        assert numbers[f"{limit}_limit"] == (1 << bits - 1) - 1


def test_every_language_says_the_same() -> None:
    numbers = {number.name.replace("_", ""): number.value for number in glm.load().numbers}
    found = {
        "glm_numbers_pkg.sv": r"localparam int (?:unsigned )?(\w+) = (\d+);  //",
        "glm_numbers.hpp": r"constexpr int k(\w+) = (\d+);",
        "glm_numbers.py": r"^([A-Z_]+): Final = (\d+)$",
    }
    for name, pattern in found.items():
        rows = re.findall(pattern, (OUTPUT / name).read_text(), re.MULTILINE)
        assert {key.replace("_", "").lower(): int(value) for key, value in rows} == numbers, name


def test_losses_have_the_same_codes_everywhere() -> None:
    package = emit.systemverilog(glm.load())
    codes = {name: int(code) for name, code in re.findall(r"LOSS_(\w+) = 2'd(\d)", package)}
    assert codes == {loss.name: loss.value for loss in glm_numbers.LossCode}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("value = 64\n", "", "number chunk: give either `value` or `power`"),
        ("value = 64\n", "value = 64\npower = 6\n", "number chunk: give either `value` or `power`"),
        ('name = "planes"', 'name = "chunk"', "number chunk is there twice"),
        ('name = "sigmoid_one"\npower = 16', 'name = "sigmoid_one"\npower = 15', "number sigmoid_one is not 1.0"),
    ],
)
def test_mistakes_are_named(old: str, new: str, message: str, tmp_path: Path) -> None:
    text = glm.SOURCE.read_text()
    assert old in text
    path = tmp_path / "glm.toml"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(glm.GlmNumbersError, match=message):
        glm.load(path)
