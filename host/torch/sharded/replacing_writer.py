"""Writes a checkpoint into the folder of an earlier one, which is whole until the new one is."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from torch.distributed.checkpoint.filesystem import FileSystem, FileSystemWriter
from torch.distributed.checkpoint.metadata import Metadata
from torch.distributed.checkpoint.planner import SavePlan

from catchment.host.checkpoint_reader import METADATA


class _Renaming(FileSystem):
    """Leaves it to the rename to replace `.metadata`: so there is always one."""

    def rm_file(self, path: str | os.PathLike[str]) -> None:
        if Path(path).name != METADATA:
            super().rm_file(path)


class ReplacingWriter(FileSystemWriter):
    """A writer of torch.distributed.checkpoint that names its files of data anew with each checkpoint.

    A run that ends at any moment leaves the checkpoint that was there, or the new one; what else it leaves goes with
    the next one.
    """

    def __init__(self, folder: Path | str) -> None:
        super().__init__(folder)
        self.fs = _Renaming()

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """Give each rank the beginning of its files' names; called on one rank for all."""
        new = uuid4().hex
        return [
            replace(plan, storage_data=replace(plan.storage_data, prefix=f"__{new}{plan.storage_data.prefix}"))
            for plan in super().prepare_global_plan(plans)
        ]

    def finish(self, metadata: Metadata, results: Any) -> None:
        """Make the new checkpoint the folder's, and take away what the one before had; called on one rank."""
        super().finish(metadata, results)
        needed = {one.storage_data.relative_path for of_rank in results for one in of_rank}
        for file in Path(self.path).glob("__*.distcp"):
            if file.name not in needed:
                file.unlink(missing_ok=True)
