"""The reference of the command says what the command says of itself."""

from __future__ import annotations

from catchment.cli import reference


def test_the_page_of_verbs_is_what_the_command_says() -> None:
    assert reference.PAGE.read_text("utf-8") == reference.render(), "run python -m catchment.cli.reference"


def test_every_verb_and_its_options_are_there() -> None:
    text = reference.render()
    assert "\n### catchment job create\n" in text
    assert "| `--loss` |" in text.split("\n### catchment fault set\n")[1].split("\n### ")[0]
