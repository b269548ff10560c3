"""The papers' page says what the sources give, and no claim that fails goes without an explanation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from catchment.checkout import ROOT
from catchment.sim.performance.figures import page, study
from catchment.sim.performance.figures.claim import Claim, Source
from catchment.sim.performance.figures.elsewhere import COUNTS, ROWS

PAGES = ROOT / "docs" / "measurements"


def test_the_pages_claims_are_those_of_the_sources() -> None:
    claims = page.all_claims()
    assert {claim.paper for claim in claims} == {"LuWu", "P4SGD", "Nezha", "MiCS", "COARSE"}
    assert page.render_papers(claims) == (PAGES / "papers.md").read_text("utf-8"), "run `catchment simulate figures`"
    assert page.render_elsewhere() == (PAGES / page.ELSEWHERE).read_text("utf-8"), "run `catchment simulate figures`"
    for claim in claims:
        assert claim.holds or claim.note, f"{claim.paper}, {claim.what}: say why it does not hold"


def test_a_claim_that_is_out_of_its_tolerance_does_not_hold() -> None:
    def claim(ours: float) -> Claim:
        return Claim("paper", "place", "what", 2.0, ours, 0.1, Source.FORMULA)

    assert claim(2.19).holds and claim(1.81).holds
    assert not claim(2.21).holds and not claim(1.79).holds


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "table",
    [study.by_workers, study.by_loss, study.by_oversubscription, study.by_slots, study.by_stragglers],
)
def test_the_pages_study_is_what_the_simulator_gives(table: object) -> None:
    assert callable(table)
    for row in table().rows:
        assert f"| {' | '.join(row)} |" in (PAGES / page.STUDY).read_text("utf-8"), "run `catchment simulate figures`"


@pytest.mark.sampled(4)
def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="nowhere"):
        page.write_pages(tmp_path / "nowhere" / "papers.md")


def test_every_figure_and_table_of_the_papers_has_a_row() -> None:
    claims = page.all_claims()
    for paper, (figures, tables) in COUNTS.items():
        compared = {claim.place for claim in claims if claim.paper == paper}
        listed = [place for row in ROWS if row.paper == paper for place in row.places]
        assert len(listed) == len(set(listed))
        every = {*tables, *(f"Figure {number}" for number in range(1, figures + 1))}
        assert every <= {*listed, *compared}, f"{paper}: {sorted(every - compared - set(listed))}"
        assert set(listed) <= every - compared


def test_what_the_rows_name_is_there() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for row in ROWS:
        for name in re.findall(r"docs/[a-z/-]+\.md", row.why):
            assert (ROOT / name).is_file(), name
        for target in re.findall(r"`make bench-([a-z-]+)`", row.why):
            assert "bench-%:" in makefile and (ROOT / "bench" / f"{target.replace('-', '_')}.py").is_file(), target
