"""What a module's forward gives."""

from __future__ import annotations

from collections.abc import Iterator

import torch


def tensors_in(output: object) -> Iterator[torch.Tensor]:
    """Every tensor of an output, which may be in tuples, lists and dictionaries of any depth."""
    if isinstance(output, torch.Tensor):
        yield output
    elif isinstance(output, dict):
        for value in output.values():
            yield from tensors_in(value)
    elif isinstance(output, list | tuple):
        for value in output:
            yield from tensors_in(value)
