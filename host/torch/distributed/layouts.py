"""Tensors in one piece of memory, for those that carry them and know of no strides."""

from __future__ import annotations

from typing import final

import torch

from catchment.host.collectives import CollectiveError


def is_plain(tensor: torch.Tensor) -> bool:
    """Whether the memory of a dense tensor has its elements one after the other, as they are."""
    return tensor.is_contiguous() and not tensor.is_conj() and not tensor.is_neg()


def in_one_piece(tensor: torch.Tensor) -> torch.Tensor:
    """The elements one after the other; the tensor's own memory where they are so already."""
    return tensor.detach().resolve_conj().resolve_neg().contiguous()


def refuse_shared_elements(tensor: torch.Tensor) -> None:
    """Refuse to write into a tensor of which several elements are one place in memory.

    Raises:
        CollectiveError: kind ``argument``.
    """
    if _shares_elements(tensor):
        raise CollectiveError(
            f"the result does not fit into a tensor of shape {list(tensor.shape)} whose elements share memory",
            kind="argument",
            hint="expand() and as_strided() make such tensors: give a clone() of it",
        )


@final
class Pieces:
    """Contiguous copies of the tensors of one call, made when it is called, and the way back."""

    def __init__(self) -> None:
        self._back: list[tuple[torch.Tensor, torch.Tensor]] = []
        self._sums: list[tuple[torch.Tensor, int]] = []

    def read(self, tensor: torch.Tensor) -> torch.Tensor:
        """What to read instead of `tensor`."""
        return tensor if _is_taken(tensor) else in_one_piece(tensor)

    def written(self, tensor: torch.Tensor) -> torch.Tensor:
        """What to read and write instead of `tensor`; `place` copies it back.

        Raises:
            CollectiveError: kind ``argument``: elements of it share memory.
        """
        if _is_taken(tensor):
            return tensor
        refuse_shared_elements(tensor)
        copy = in_one_piece(tensor)
        self._back.append((tensor, copy))
        return copy

    def taken(self, tensor: torch.Tensor, part: torch.Tensor) -> None:
        """Have `place` put a part of what gloo has worked on into `tensor`.

        Raises:
            CollectiveError: kind ``argument``: elements of it share memory.
        """
        refuse_shared_elements(tensor)
        self._back.append((tensor, part))

    def divided(self, sums: torch.Tensor, ranks: int) -> None:
        """Have `place` divide integers that gloo has added up, towards zero, before it puts them anywhere."""
        self._sums.append((sums, ranks))

    @property
    def any_written(self) -> bool:
        """Whether `place` has anything to do."""
        return bool(self._back or self._sums)

    def place(self) -> None:
        """Put the results where they belong."""
        for given, ranks in self._sums:
            sums = given.detach()
            # The ranks may be more than the tensor's type holds, of which its own division would make another number.
            sums.copy_(sums.to(torch.int64).div_(ranks, rounding_mode="trunc"))
        self._sums.clear()
        for given, copy in self._back:
            tensor = given.detach()  # by the thread that copies, which may differ from the caller's
            tensor.copy_(copy.view(tensor.shape))
        self._back.clear()


def _shares_elements(tensor: torch.Tensor) -> bool:
    if tensor.numel() < 2 or tensor.is_contiguous():
        return False
    steps = sorted((stride, size) for stride, size in zip(tensor.stride(), tensor.shape, strict=True) if size > 1)
    if steps[0][0] == 0:
        return True
    reach = 0
    for stride, size in steps:
        if stride <= reach:
            break
        reach += stride * (size - 1)
    else:
        return False  # each dimension steps over all that the smaller ones reach
    places = torch.zeros(1, dtype=torch.int64)
    for stride, size in steps:
        places = (places[:, None] + torch.arange(size) * stride).view(-1)
    return not bool(places.sort().values.diff().all())


def _is_taken(tensor: torch.Tensor) -> bool:
    return tensor.layout != torch.strided or is_plain(tensor)
