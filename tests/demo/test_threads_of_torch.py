"""The demo in one process has the bits of its reference however many threads torch would take."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import torch
from rich.console import Console

from catchment.demo import TrainingOptions, run


@pytest.mark.sampled(4)
def test_bits_do_not_depend_on_torch_s_threads(tmp_path: Path) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        options = TrainingOptions(workers=2, preset="tiny", steps=1, batch=2, network="memory", output=tmp_path)
        outcome = run(options, Console(file=io.StringIO()))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert outcome.comparison is not None
    assert outcome.comparison.exact
