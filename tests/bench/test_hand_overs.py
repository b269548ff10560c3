"""The hand-overs that an all-reduce is compared with add up what they hand over, every way."""

from __future__ import annotations

import json
import math
import os
import subprocess

import pytest

from bench.hand_overs import WAYS
from bench.processors import HAND_OVERS, round_trip


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is one processor")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("size", [1, 4096, 3 << 20])  # one vector, and three windows
def test_sums_are_right_and_timed(way: str, size: int) -> None:
    done = subprocess.run([HAND_OVERS, way, str(size), "3"], check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["seconds"] > 0


def test_a_word_goes_there_and_back() -> None:
    if len(os.sched_getaffinity(0)) < 2:
        assert round_trip() != round_trip()  # not a number
    else:
        assert 0 < round_trip() < math.inf
