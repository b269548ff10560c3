"""Types of the process group in C++ (host/torch/distributed/native)."""

from collections.abc import Callable, Sequence
from typing import Any, Final, final

TORCH_VERSION: Final[str]

def owners(backend: Any) -> int:
    """How many keep a c10d::Backend alive; its Python object is one, whatever refers to that."""

@final
class SwitchBackend:
    """A c10d::Backend: see host.torch.distributed.native_group."""

    def __init__(
        self,
        *,
        rank: int,
        group: int,
        workers: Sequence[int],
        exponent: int | None,
        packed: bool,
        python: Any,
        explain: Callable[..., Exception],
    ) -> None: ...
    @property
    def python(self) -> Any: ...
