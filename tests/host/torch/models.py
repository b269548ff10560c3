"""Models of many shapes for the hooks: each gives a module, its layers (None: default) and one batch of input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from catchment.sim.training.model import PRESETS, Decoder, initialise

Made = tuple[nn.Module, list[str] | None, torch.Tensor]


class TiedInside(nn.Module):
    """One parameter used by two modules of the same layer."""

    def __init__(self) -> None:
        super().__init__()
        self.pair = nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 6))
        self.pair[2].weight = self.pair[0].weight
        self.out = nn.Linear(6, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(self.pair(x))


class Many(nn.Module):
    """A layer that takes and gives a dict of tensors, one of them unused by the loss."""

    class Fork(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.left, self.right, self.idle = nn.Linear(5, 4), nn.Linear(5, 4), nn.Linear(5, 2)

        def forward(self, x: torch.Tensor) -> dict[str, Any]:
            return {"both": (self.left(x), [self.right(x)]), "idle": self.idle(x)}

    def __init__(self) -> None:
        super().__init__()
        self.fork = Many.Fork()
        self.join = nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = self.fork(x)
        left, (right,) = parts["both"]
        return self.join(left * right)


class Checkpointed(nn.Module):
    """Blocks whose activations are recomputed in backward, as the paper trains."""

    def __init__(self, reentrant: bool) -> None:
        super().__init__()
        self.reentrant = reentrant
        self.first = nn.Linear(6, 6)
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(6, 12), nn.GELU(), nn.Linear(12, 6)) for _ in range(3))
        self.last = nn.Linear(6, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=self.reentrant)
        return self.last(x)


class Skipping(nn.Module):
    """The loss does not depend on the middle layer, and the last one is frozen in part."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.idle, self.last = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)
        self.last.bias.requires_grad_(False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        self.idle(x)
        return self.last(x)


class TiedHead(nn.Module):
    """The head's weights are the embedding's, as in most language models; `bias`: the head has something of its own."""

    def __init__(self, bias: bool) -> None:
        super().__init__()
        self.wte = nn.Embedding(11, 6)
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(6, 12), nn.GELU(), nn.Linear(12, 6)) for _ in range(2))
        self.norm = nn.LayerNorm(6)
        self.lm_head = nn.Linear(6, 11, bias=bias)
        self.lm_head.weight = self.wte.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.wte(tokens)
        for block in self.blocks:
            x = x + block(x)
        logits: torch.Tensor = self.lm_head(self.norm(x))
        return logits


class SharedEmbedding(nn.Module):
    """Encoder and decoder have one embedding, and the head its weights: T5's modules under T5's names."""

    class Stack(nn.Module):
        def __init__(self, embedding: nn.Embedding) -> None:
            super().__init__()
            self.embed_tokens = embedding
            self.block = nn.ModuleList(nn.Linear(6, 6) for _ in range(2))

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            x: torch.Tensor = self.embed_tokens(tokens)
            for block in self.block:
                x = torch.tanh(block(x))
            return x

    def __init__(self) -> None:
        super().__init__()
        self.shared = nn.Embedding(11, 6)
        self.encoder = SharedEmbedding.Stack(self.shared)
        self.decoder = SharedEmbedding.Stack(self.shared)
        self.lm_head = nn.Linear(6, 11, bias=False)
        self.lm_head.weight = self.shared.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.lm_head(self.decoder(tokens) * self.encoder(tokens.flip(1)))
        return logits


def tokens() -> torch.Tensor:
    return torch.randint(0, 11, (3, 5), generator=torch.Generator().manual_seed(6))


def decoder() -> Made:
    model = Decoder(PRESETS["tiny"])
    initialise(model, 3)
    return model, None, torch.randint(0, 256, (3, 20), generator=torch.Generator().manual_seed(5))


def perceptron() -> Made:
    model = nn.Sequential(nn.Linear(7, 9), nn.ReLU(), nn.Linear(9, 9), nn.Tanh(), nn.Linear(9, 2))
    return model, None, torch.randn(4, 7)


def convolutions() -> Made:
    model = nn.Sequential(
        nn.Conv2d(2, 5, 3), nn.BatchNorm2d(5), nn.ReLU(), nn.Conv2d(5, 3, 3), nn.Flatten(), nn.Linear(12, 2)
    )
    return model, None, torch.randn(4, 2, 6, 6)


def whole() -> Made:
    return nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2)), [""], torch.randn(5, 3)


_STACKS = [f"{stack}.block.{index}" for stack in ("decoder", "encoder") for index in range(2)]
MODELS: dict[str, Callable[[], Made]] = {
    "decoder": decoder,
    "perceptron": perceptron,
    "convolutions": convolutions,
    "one layer": whole,
    "tied inside a layer": lambda: (TiedInside(), ["pair", "out"], torch.randn(4, 6)),
    "many outputs": lambda: (Many(), None, torch.randn(3, 5)),
    "checkpointed": lambda: (
        Checkpointed(False),
        ["first", "blocks.0", "blocks.1", "blocks.2", "last"],
        torch.randn(3, 6),
    ),
    "checkpointed, reentrant": lambda: (Checkpointed(True), None, torch.randn(3, 6)),
    "tied head": lambda: (TiedHead(False), None, tokens()),
    "tied head with a bias": lambda: (TiedHead(True), None, tokens()),
    "shared embedding": lambda: (SharedEmbedding(), ["shared", *_STACKS, "lm_head"], tokens()),
    "skipping": lambda: (Skipping(), None, torch.randn(3, 4)),
}
