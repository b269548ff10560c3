"""A sample of the proofs of `make formal`, with their covers and mutants, and the runner's own refusals."""

from __future__ import annotations

import dataclasses

import pytest

from catchment.rtl.formal.prove import FormalError, Mutant, Proof, models, proofs, run

PROOFS = {proof.name: proof for proof in proofs()}
SAMPLE = ("skid_buffer", "arbiter_rr")


@pytest.mark.sampled(4)
@pytest.mark.sources_alone
@pytest.mark.parametrize("name", SAMPLE)
def test_a_proof_holds_and_its_mutants_fail(name: str) -> None:
    for verdict in run(PROOFS[name]):
        assert verdict.good, f"{verdict.task}: {verdict.log}"


@pytest.mark.slow
@pytest.mark.sources_alone
@pytest.mark.parametrize("proof", [p for p in PROOFS.values() if p.name not in SAMPLE], ids=lambda p: p.name)
def test_every_other_proof(proof: Proof) -> None:
    for verdict in run(proof):
        assert verdict.good, f"{verdict.task}: {verdict.log}"


@pytest.mark.sampled(4)
def test_a_mutant_that_changes_nothing_is_told() -> None:
    mutant = PROOFS["skid_buffer"].mutants[0]
    harmless = dataclasses.replace(PROOFS["skid_buffer"], mutants=(dataclasses.replace(mutant, new=mutant.old),))
    assert [verdict.good for verdict in run(harmless)] == [True, True, True, False]


@pytest.mark.sampled(4)
def test_an_induction_step_may_be_asked_for_each_assertion() -> None:
    proof = dataclasses.replace(PROOFS["skid_buffer"], one_by_one=True, mutants=())
    assert all(verdict.good for verdict in run(proof))
    _, step, _ = run(dataclasses.replace(proof, depth=1))  # an assertion speaks of the clock before
    assert not step.good and "does not follow" in step.log


@pytest.mark.sampled(4)
def test_covers_are_looked_for_in_a_model_of_their_own_parameters() -> None:
    narrow = dataclasses.replace(PROOFS["skid_buffer"], cover_parameters={"WIDTH": 8}, mutants=())
    proof, covers = models(narrow)
    assert "yosys-smt2-input s_data 512\n" in proof.read_text() and "yosys-smt2-input s_data 8\n" in covers.read_text()


def test_a_mutant_of_text_that_is_gone_is_refused() -> None:
    lost = dataclasses.replace(PROOFS["skid_buffer"], mutants=(Mutant("skid_buffer", "not there", ""),))
    with pytest.raises(FormalError, match="0 times: 'not there'"):
        run(lost)
