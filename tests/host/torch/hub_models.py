"""Models with the modules, names and real sizes of well-known ones of the hub: module trees without a forward."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn


def tree(**children: nn.Module) -> nn.Module:
    """A module with these children, in this order."""
    module = nn.Module()
    for name, child in children.items():
        module.add_module(name, child)
    return module


def linear(inputs: int, outputs: int, bias: bool = True) -> nn.Module:
    return nn.Linear(inputs, outputs, bias=bias)


def conv1d(inputs: int, outputs: int) -> nn.Module:
    """GPT-2's: a linear layer with its weight the other way round."""
    module = nn.Module()
    module.weight = nn.Parameter(torch.empty(inputs, outputs))
    module.bias = nn.Parameter(torch.empty(outputs))
    return module


def rms_norm(width: int) -> nn.Module:
    module = nn.Module()
    module.weight = nn.Parameter(torch.empty(width))
    return module


def llama(layers: int = 32, width: int = 4096, hidden: int = 14336, vocabulary: int = 128256) -> nn.Module:
    """Llama 3 8B."""
    narrow = width // 4

    def block() -> nn.Module:
        attention = tree(
            q_proj=linear(width, width, False),
            k_proj=linear(width, narrow, False),
            v_proj=linear(width, narrow, False),
            o_proj=linear(width, width, False),
        )
        mlp = tree(
            gate_proj=linear(width, hidden, False),
            up_proj=linear(width, hidden, False),
            down_proj=linear(hidden, width, False),
        )
        return tree(
            self_attn=attention, mlp=mlp, input_layernorm=rms_norm(width), post_attention_layernorm=rms_norm(width)
        )

    rotary = nn.Module()
    rotary.register_buffer("inv_freq", torch.empty(width // 64), persistent=False)
    body = tree(
        embed_tokens=nn.Embedding(vocabulary, width),
        layers=nn.ModuleList(block() for _ in range(layers)),
        norm=rms_norm(width),
        rotary_emb=rotary,
    )
    return tree(model=body, lm_head=linear(width, vocabulary, False))


def gpt2(layers: int = 12, width: int = 768, vocabulary: int = 50257, places: int = 1024) -> nn.Module:
    """GPT-2: the head tied to the embedding, masks among the buffers."""

    def block() -> nn.Module:
        attention = tree(c_attn=conv1d(width, 3 * width), c_proj=conv1d(width, width))
        attention.register_buffer("bias", torch.ones(1, 1, places, places, dtype=torch.bool))
        attention.register_buffer("masked_bias", torch.tensor(-1e4))
        mlp = tree(c_fc=conv1d(width, 4 * width), c_proj=conv1d(4 * width, width))
        return tree(ln_1=nn.LayerNorm(width), attn=attention, ln_2=nn.LayerNorm(width), mlp=mlp)

    body = tree(
        wte=nn.Embedding(vocabulary, width),
        wpe=nn.Embedding(places, width),
        h=nn.ModuleList(block() for _ in range(layers)),
        ln_f=nn.LayerNorm(width),
    )
    head = nn.Linear(width, vocabulary, bias=False)
    head.weight = body.wte.weight
    return tree(transformer=body, lm_head=head)


def bert(layers: int = 12, width: int = 768, vocabulary: int = 30522, places: int = 512) -> nn.Module:
    """BERT: integer `position_ids` among the buffers, a head of several modules, one of them tied."""

    def block() -> nn.Module:
        inner = tree(query=linear(width, width), key=linear(width, width), value=linear(width, width))
        attention = tree(self=inner, output=tree(dense=linear(width, width), LayerNorm=nn.LayerNorm(width)))
        return tree(
            attention=attention,
            intermediate=tree(dense=linear(width, 4 * width)),
            output=tree(dense=linear(4 * width, width), LayerNorm=nn.LayerNorm(width)),
        )

    embeddings = tree(
        word_embeddings=nn.Embedding(vocabulary, width),
        position_embeddings=nn.Embedding(places, width),
        token_type_embeddings=nn.Embedding(2, width),
        LayerNorm=nn.LayerNorm(width),
    )
    embeddings.register_buffer("position_ids", torch.arange(places).expand(1, -1))
    embeddings.register_buffer("token_type_ids", torch.zeros(1, places, dtype=torch.int64))
    predictions = tree(
        transform=tree(dense=linear(width, width), LayerNorm=nn.LayerNorm(width)),
        decoder=nn.Linear(width, vocabulary),
    )
    predictions.bias = predictions.decoder.bias
    predictions.decoder.weight = embeddings.word_embeddings.weight
    encoder = tree(layer=nn.ModuleList(block() for _ in range(layers)))
    return tree(bert=tree(embeddings=embeddings, encoder=encoder), cls=tree(predictions=predictions))


def t5(layers: int = 12, width: int = 768, vocabulary: int = 32128) -> nn.Module:
    """T5: one embedding in three places, two stacks of blocks, blocks with lists of their own."""
    shared = nn.Embedding(vocabulary, width)

    def attention() -> nn.Module:
        return tree(**{name: linear(width, width, False) for name in "qkvo"})

    def stack(decoder: bool) -> nn.Module:
        blocks = nn.ModuleList()
        for index in range(layers):
            first = attention()
            if index == 0:
                first.add_module("relative_attention_bias", nn.Embedding(32, 12))
            parts = [tree(SelfAttention=first, layer_norm=rms_norm(width))]
            if decoder:
                parts.append(tree(EncDecAttention=attention(), layer_norm=rms_norm(width)))
            feed = tree(wi=linear(width, 4 * width, False), wo=linear(4 * width, width, False))
            parts.append(tree(DenseReluDense=feed, layer_norm=rms_norm(width)))
            blocks.append(tree(layer=nn.ModuleList(parts)))
        return tree(embed_tokens=shared, block=blocks, final_layer_norm=rms_norm(width))

    head = nn.Linear(width, vocabulary, bias=False)
    head.weight = shared.weight
    return tree(shared=shared, encoder=stack(False), decoder=stack(True), lm_head=head)


def neox(layers: int = 44, width: int = 6144, vocabulary: int = 50432) -> nn.Module:
    """GPT-NeoX 20B: the head is called `embed_out`."""

    def block() -> nn.Module:
        attention = tree(query_key_value=linear(width, 3 * width), dense=linear(width, width))
        mlp = tree(dense_h_to_4h=linear(width, 4 * width), dense_4h_to_h=linear(4 * width, width))
        return tree(
            input_layernorm=nn.LayerNorm(width),
            post_attention_layernorm=nn.LayerNorm(width),
            attention=attention,
            mlp=mlp,
        )

    body = tree(
        embed_in=nn.Embedding(vocabulary, width),
        layers=nn.ModuleList(block() for _ in range(layers)),
        final_layer_norm=nn.LayerNorm(width),
    )
    return tree(gpt_neox=body, embed_out=linear(width, vocabulary, False))


def mixtral(layers: int = 32, width: int = 4096, hidden: int = 14336, vocabulary: int = 32000) -> nn.Module:
    """Mixtral 8x7B: lists of experts within the blocks, which are no layers of their own."""
    model = llama(layers, width, 64, vocabulary)

    def expert() -> nn.Module:
        return tree(w1=linear(width, hidden, False), w2=linear(hidden, width, False), w3=linear(width, hidden, False))

    for block in model.model.layers:
        del block.mlp
        experts = nn.ModuleList(expert() for _ in range(8))
        block.add_module("block_sparse_moe", tree(gate=linear(width, 8, False), experts=experts))
    return model


def vit(layers: int = 12, width: int = 768) -> nn.Module:
    """ViT: parameters beside modules in the embeddings."""

    def block() -> nn.Module:
        inner = tree(query=linear(width, width), key=linear(width, width), value=linear(width, width))
        return tree(
            attention=tree(attention=inner, output=tree(dense=linear(width, width))),
            intermediate=tree(dense=linear(width, 4 * width)),
            output=tree(dense=linear(4 * width, width)),
            layernorm_before=nn.LayerNorm(width),
            layernorm_after=nn.LayerNorm(width),
        )

    embeddings = tree(patch_embeddings=tree(projection=nn.Conv2d(3, width, 16, 16)))
    embeddings.cls_token = nn.Parameter(torch.empty(1, 1, width))
    embeddings.position_embeddings = nn.Parameter(torch.empty(1, 197, width))
    body = tree(
        embeddings=embeddings,
        encoder=tree(layer=nn.ModuleList(block() for _ in range(layers))),
        layernorm=nn.LayerNorm(width),
    )
    return tree(vit=body, classifier=linear(width, 1000))


HUB: dict[str, tuple[Callable[[], nn.Module], list[str], int]] = {
    "llama": (
        llama,
        ["model.embed_tokens", *(f"model.layers.{i}" for i in range(32)), "model.norm", "lm_head"],
        8_030_261_248,
    ),
    "gpt2": (
        gpt2,
        ["transformer.wte", "transformer.wpe", *(f"transformer.h.{i}" for i in range(12)), "transformer.ln_f"],
        124_439_808,
    ),
    "bert": (bert, ["bert.embeddings", *(f"bert.encoder.layer.{i}" for i in range(12)), "cls"], 109_514_298),
    "t5": (
        t5,
        [
            "shared",
            *(f"encoder.block.{i}" for i in range(12)),
            "encoder.final_layer_norm",
            *(f"decoder.block.{i}" for i in range(12)),
            "decoder.final_layer_norm",
        ],
        222_903_552,
    ),
    "neox": (
        neox,
        ["gpt_neox.embed_in", *(f"gpt_neox.layers.{i}" for i in range(44)), "gpt_neox.final_layer_norm", "embed_out"],
        20_554_567_680,
    ),
    "mixtral": (
        mixtral,
        ["model.embed_tokens", *(f"model.layers.{i}" for i in range(32)), "model.norm", "lm_head"],
        46_702_792_704,
    ),
    "vit": (
        vit,
        ["vit.embeddings", *(f"vit.encoder.layer.{i}" for i in range(12)), "vit.layernorm", "classifier"],
        86_567_656,
    ),
}
"""Name -> what makes the model, its layers as forward runs them, and how many parameters the hub says that it has."""
