"""An OPT-style decoder: pre-LN blocks, learned positions, ReLU MLP of four times the width, byte vocabulary.

Plain PyTorch that knows nothing of networks; `catchment.host.torch.attach` is all that training through a switch adds.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

VOCABULARY = 256


@dataclass(frozen=True, slots=True)
class ModelShape:
    """Sizes of a decoder: number of layers and heads, hidden width, longest sequence, all in elements."""

    layers: int
    heads: int
    hidden: int
    sequence: int
    vocabulary: int = VOCABULARY

    def __post_init__(self) -> None:
        if min(self.layers, self.heads, self.hidden, self.sequence, self.vocabulary) < 1:
            raise ValueError(f"{self}: every size must be at least 1")
        if self.hidden % self.heads:
            raise ValueError(f"hidden width {self.hidden} is not a multiple of {self.heads} heads")

    @property
    def parameters(self) -> int:
        """Parameters of the decoder (S in the paper), untied head included."""
        block = 12 * self.hidden**2 + 13 * self.hidden
        embedding = (self.vocabulary + self.sequence) * self.hidden
        head = 2 * self.hidden + self.vocabulary * self.hidden
        return embedding + self.layers * block + head


PRESETS: dict[str, ModelShape] = {
    "tiny": ModelShape(layers=2, heads=2, hidden=32, sequence=32),
    "demo": ModelShape(layers=4, heads=4, hidden=128, sequence=128),
    "small": ModelShape(layers=6, heads=8, hidden=256, sequence=256),
    "deep": ModelShape(layers=32, heads=2, hidden=32, sequence=32),
}

# Table 2 of the paper: models of its evaluation, sequence length 1024, OPT's vocabulary. Starred ones are its own.
PAPER_SHAPES: dict[str, ModelShape] = {
    "OPT-1.3B": ModelShape(24, 32, 2048, 1024, 50272),
    "OPT-2.7B": ModelShape(32, 32, 2560, 1024, 50272),
    "OPT-6.7B": ModelShape(32, 32, 4096, 1024, 50272),
    "OPT-13B": ModelShape(40, 40, 5120, 1024, 50272),
    "OPT-30B": ModelShape(48, 56, 7168, 1024, 50272),
    "OPT-66B": ModelShape(64, 72, 9216, 1024, 50272),
    "OPT-175B": ModelShape(96, 96, 12288, 1024, 50272),
    "OPT-276B*": ModelShape(112, 112, 14336, 1024, 50272),
    "OPT-505B*": ModelShape(124, 144, 18432, 1024, 50272),
    "OPT-1.0T*": ModelShape(172, 172, 22016, 1024, 50272),
}


class Embedding(nn.Module):
    """Tokens (batch, sequence) to vectors (batch, sequence, hidden), position added."""

    def __init__(self, shape: ModelShape) -> None:
        super().__init__()
        self.token = nn.Embedding(shape.vocabulary, shape.hidden)
        self.position = nn.Embedding(shape.sequence, shape.hidden)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        places = torch.arange(tokens.shape[1], device=tokens.device)
        vectors: torch.Tensor = self.token(tokens) + self.position(places)
        return vectors


class DecoderBlock(nn.Module):
    """x + attention(norm(x)), then x + MLP(norm(x)); shape (batch, sequence, hidden) throughout."""

    def __init__(self, shape: ModelShape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.attention_norm = nn.LayerNorm(shape.hidden)
        self.qkv = nn.Linear(shape.hidden, 3 * shape.hidden)
        self.project = nn.Linear(shape.hidden, shape.hidden)
        self.mlp_norm = nn.LayerNorm(shape.hidden)
        self.widen = nn.Linear(shape.hidden, 4 * shape.hidden)
        self.narrow = nn.Linear(4 * shape.hidden, shape.hidden)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, hidden = x.shape
        qkv = self.qkv(self.attention_norm(x)).view(batch, length, 3, self.heads, hidden // self.heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.project(attended.transpose(1, 2).reshape(batch, length, hidden))
        widened = F.relu(self.widen(self.mlp_norm(x)))
        result: torch.Tensor = x + self.narrow(widened)
        return result


class Head(nn.Module):
    """Final norm and the projection to logits (batch, sequence, vocabulary); not tied to the embedding."""

    def __init__(self, shape: ModelShape) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(shape.hidden)
        self.logits = nn.Linear(shape.hidden, shape.vocabulary, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.logits(self.norm(x))
        return logits


class Decoder(nn.Module):
    """The language model: tokens (batch, sequence) to logits (batch, sequence, vocabulary)."""

    def __init__(self, shape: ModelShape) -> None:
        super().__init__()
        self.shape = shape
        self.embedding = Embedding(shape)
        self.blocks = nn.ModuleList(DecoderBlock(shape) for _ in range(shape.layers))
        self.head = Head(shape)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        logits: torch.Tensor = self.head(x)
        return logits


def initialise(model: Decoder, seed: int) -> None:
    """OPT's initialisation, from `seed` alone: normal(0, 0.02), residual projections scaled by depth, norms at one."""
    generator = torch.Generator().manual_seed(seed)
    depth = (2 * model.shape.layers) ** -0.5
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("norm.weight"):
                parameter.fill_(1.0)
            elif parameter.dim() == 1:
                parameter.zero_()
            else:
                scale = 0.02 * (depth if ".project." in name or ".narrow." in name else 1.0)
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * scale)


def next_byte_loss(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy (nats per byte) of predicting each byte of `tokens` from those before it."""
    predicted = logits[:, :-1].reshape(-1, logits.shape[-1])
    return F.cross_entropy(predicted, tokens[:, 1:].reshape(-1))
