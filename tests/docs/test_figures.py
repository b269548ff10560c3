"""Figures that the code draws show what the code does now."""

from __future__ import annotations

import pytest

from catchment.checkout import ROOT
from catchment.demo.pictures.catalogue import PICTURES


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_of_what_the_code_does(name: str) -> None:
    drawn = (ROOT / "docs" / "figures" / f"{name}.svg").read_text("utf-8")
    assert drawn == PICTURES[name](), "draw it again: python -m catchment.demo.pictures docs/figures"
