"""`catchment mics plan` chooses partition sizes, for people and for scripts."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

Call = Callable[..., str]


def test_plan_shows_what_each_size_needs(call: Call) -> None:
    said = call("mics", "plan", "--model", "BERT-15B", "--nodes", "16", "--memory", "32GiB")
    assert "partition groups of 16" in said
    rows = [line for line in said.splitlines() if "no, by" in line or "yes" in line]
    assert len(rows) == 5  # of 1, 2, 4, 8 and 16 ranks
    assert "33.3" in rows[3] and "no, by 3.6" in rows[3]
    assert "19.4" in rows[4] and "yes" in rows[4]


def test_plan_for_scripts(call: Call) -> None:
    found = json.loads(call("mics", "plan", "--model", "OPT-13B", "--nodes", "16", "--per-node", "8", "--json"))
    assert found["partition_size"] == 8
    assert [need["partition_size"] for need in found["needs"]] == [1, 2, 4, 8]
    last = found["needs"][-1]
    assert last["states"] + last["layers"] + last["activations"] == last["total"] <= found["usable"]


def test_what_does_not_fit_or_is_not_known_is_said(call: Call) -> None:
    said = " ".join(call("mics", "plan", "--model", "BERT-50B", "--nodes", "2", code=1).split())
    assert "BERT-50B fits no partition group" in said and "27.3 GiB more than" in said
    assert "give one of BERT-10B" in call("mics", "plan", "--model", "BERT", "--nodes", "2", code=1)
    said = call("mics", "plan", "--model", "BERT-10B", "--nodes", "2", "--memory", "32", code=2)
    assert "give a number of MiB or GiB" in " ".join(said.split())


@pytest.mark.parametrize(
    ("option", "largest"),
    [("nodes", 1 << 16), ("per-node", 1 << 8), ("batch", 1 << 24), ("sequence", 1 << 24), ("prefetch", 1 << 24)],
)
@pytest.mark.parametrize("digits", [10, 400, 5000])
def test_a_number_that_no_cluster_has_is_refused(call: Call, option: str, largest: int, digits: int) -> None:
    words = {"--model": "BERT-15B", "--nodes": "16", f"--{option}": "9" * digits}
    said = call("mics", "plan", *(word for pair in words.items() for word in pair), code=2)
    assert f"Invalid value for '--{option}'" in said
    assert digits > 10 or str(largest) in said


def test_memory_that_no_machine_has_is_refused(call: Call) -> None:
    said = call("mics", "plan", "--model", "BERT-15B", "--nodes", "2", "--memory", f"{'9' * 400}GiB", code=2)
    assert "give a number of MiB or GiB" in " ".join(said.split())
