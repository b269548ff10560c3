"""How much each rank sends to each in an all_to_all, which gloo takes on trust."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from catchment.host.collectives import CollectiveError
from catchment.host.collectives.errors import wrong
from catchment.host.collectives.whole_number import whole


@dataclass(frozen=True, slots=True)
class Sizes:
    """The elements that this rank sends to each rank and receives from each."""

    sent: Sequence[int]
    received: Sequence[int]

    @classmethod
    def of_lists(cls, outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], ranks: int) -> Sizes:
        """Sizes of an all_to_all of lists.

        Raises:
            CollectiveError: kind ``argument``: a list has not one tensor for each rank, or the types differ.
        """
        if len(outputs) != ranks or len(inputs) != ranks:
            raise wrong(
                f"all_to_all of {len(inputs)} tensors into {len(outputs)}",
                f"give {ranks} and {ranks}, one for each rank",
            )
        if len({tensor.dtype for tensor in (*outputs, *inputs)}) > 1:
            raise wrong("all_to_all of tensors of several types", "give them one type")
        return cls([tensor.numel() for tensor in inputs], [tensor.numel() for tensor in outputs])

    @classmethod
    def of_splits(
        cls, tensors: tuple[torch.Tensor, torch.Tensor], splits: tuple[Sequence[int], Sequence[int]], ranks: int
    ) -> Sizes:
        """Sizes of an all_to_all_single.

        Args:
            tensors: the output, and what is given.
            splits: rows of each for each rank; none: equally many.
            ranks: of the group.

        Raises:
            CollectiveError: kind ``argument``: the splits are not those of the tensor, or the types differ.
        """
        output, given = tensors
        if output.dtype != given.dtype:
            raise wrong(f"all_to_all_single of {given.dtype} into {output.dtype}", "give them one type")
        return cls(_elements(given, splits[1], ranks, "input"), _elements(output, splits[0], ranks, "output"))


def check_sizes(told: torch.Tensor, rank: int, asked: str) -> None:
    """Compare what all ranks have told: a row for each, first what it sends, then what it receives.

    Raises:
        CollectiveError: kind ``mismatch``, on every rank: some rank sends what another does not expect.
    """
    ranks = len(told)
    sent, received = told[:, :ranks], told[:, ranks:].t()
    wrong = (sent != received).nonzero().tolist()
    if not wrong:
        return
    source, target = wrong[0]
    raise CollectiveError(
        f"rank {source} sends {int(sent[source, target])} elements to rank {target}, "
        f"which expects {int(received[source, target])}",
        kind="mismatch",
        operation=asked,
        peers=sorted({one for pair in wrong for one in pair} - {rank}),
        hint="give each rank output sizes that are the others' input sizes",
    )


def _elements(tensor: torch.Tensor, splits: Sequence[int], ranks: int, name: str) -> list[int]:
    rows = tensor.shape[0] if tensor.dim() else 0
    if not splits and rows % ranks == 0:
        return [tensor.numel() // ranks] * ranks
    hint = f"give {ranks} sizes whose sum is {rows}, or as many rows for each rank"
    splits = [whole(f"all_to_all_single with {name} splits, of which one is", size, hint) for size in splits]
    if len(splits) != ranks or min(splits) < 0 or sum(splits) != rows:
        raise wrong(
            f"all_to_all_single with {name} splits {list(splits)} of {rows} rows",
            hint,
        )
    return [size * (tensor.numel() // max(1, rows)) for size in splits]
