"""Models in and out as safetensors, and the verbs of `catchment optimizer`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from out_of_core import TABLE, create, digest, initial, node_options, train
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from typer.testing import CliRunner

from catchment.cli import app
from catchment.cli.optimizer import OptimizerError
from catchment.host.optimizer import DynamicLossScale
from catchment.host.optimizer.store import Precision, Rule, Store, StoreError, interchange
from catchment.host.optimizer.store.check import check
from catchment.host.optimizer.store.importing import import_model
from catchment.host.optimizer.store.interchange import INDEX, export, look_at
from catchment.host.optimizer.streaming import Clip, StreamingOptions
from catchment.host.optimizer.streaming.clipping import Clipping


def test_an_import_that_fails_leaves_no_store(trained: list[Path], tmp_path: Path) -> None:
    """Nothing that would open with moments of zero, and nothing in the way of the next one."""
    with Store.open(trained) as store:
        index = export(store, tmp_path / "out", moments=True)
        wanted = digest(store)
    whole = json.loads(index.read_text())
    damaged = {**whole, "weight_map": {k: v for k, v in whole["weight_map"].items() if "second.head" not in k}}
    index.write_text(json.dumps(damaged))
    for layers, says in (
        ([], "has no optimizer.second.head.weight"),
        (["embedding", "block", "head"], "no layer block"),
    ):
        with pytest.raises(StoreError, match=says) as caught:
            import_model(look_at(index.parent, layers), [tmp_path / "new"])
        assert caught.value.kind == "mismatch"
        with pytest.raises(StoreError, match="not an optimizer store"):
            Store.open([tmp_path / "new"])
    index.write_text(json.dumps(whole))
    with import_model(look_at(index.parent), [tmp_path / "new"]) as store:
        assert (store.state.trained, digest(store)) == (5, wanted)


@pytest.mark.parametrize("moments", [False, True])
def test_an_export_that_was_killed_is_no_smaller_model(trained: list[Path], tmp_path: Path, moments: bool) -> None:
    """A kill may come at any of its files, and before the index is written."""
    killed = tmp_path / "killed"

    class Killed(BaseException):
        pass

    with Store.open(trained) as store:
        whole = export(store, tmp_path / "whole", moments=moments).parent
        layers = len(store.geometry.table)

        def until(last: int) -> Callable[[int], None]:
            def on_layer(index: int) -> None:
                if index > last:
                    raise Killed

            return on_layer

        for last in range(layers - 1):
            with pytest.raises(Killed):
                export(store, killed, moments=moments, on_layer=until(last))
            with pytest.raises(StoreError, match=rf"{last + 1} of {layers} files of model are there, and no") as caught:
                look_at(killed)
            assert caught.value.kind == "mismatch"
    (whole / INDEX).unlink()
    if moments:
        with pytest.raises(StoreError, match=f"moments without {INDEX}"):
            look_at(whole)
    else:
        assert len(look_at(whole).table), "all of its weights are there"


@pytest.fixture
def trained(tmp_path: Path) -> list[Path]:
    places = [tmp_path / "a", tmp_path / "b"]
    with create(places) as store:
        train(store, 3)
        store.take_snapshot("third")
        train(store, 5)
    return places


def test_weights_come_out_under_their_names(trained: list[Path], tmp_path: Path) -> None:
    with Store.open(trained) as store:
        index = export(store, tmp_path / "out")
        export(store, tmp_path / "third", state=store.snapshots["third"])
        with pytest.raises(StoreError, match="a model already"):
            export(store, tmp_path / "out")
        node, _ = train(store, 5)
        expected = {t.name: node.weights(layer.index)[t.span].view(t.shape) for layer in TABLE for t in layer.tensors}
    places = json.loads(index.read_text())["weight_map"]
    found = {name: load_file(index.parent / file)[name] for name, file in places.items()}
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], expected[name]) for name in expected)
    third = load_file(tmp_path / "third" / places["head.weight"])["head.weight"]
    assert not torch.equal(third, expected["head.weight"])


@pytest.mark.parametrize("moments", list(Precision))
def test_export_and_import_with_moments_go_on_to_the_same_bits(tmp_path: Path, moments: Precision) -> None:
    """Also with what only the commit knows: the norm for delayed clipping, and the loss scale."""
    how = {
        "options": replace(node_options(), loss_scale=DynamicLossScale(2.0**15, growth=2)),
        "streaming": StreamingOptions(clip=Clip(3.0, Clipping.DELAYED)),
        "half": True,
    }
    with create([tmp_path / "a"], moments=moments) as store:
        train(store, 5, **how)
        export(store, tmp_path / "out", moments=True)
        train(store, 7, **how)
        wanted = digest(store)
    with import_model(look_at(tmp_path / "out"), [tmp_path / "x", tmp_path / "y"], moments=moments) as store:
        assert store.state.trained == 5
        assert store.geometry.table == TABLE
        train(store, 7, **how)
        assert digest(store) == wanted
        assert check(store) == []


def test_import_of_other_peoples_files(tmp_path: Path) -> None:
    tensors = {t.name: initial(layer.index)[t.span].view(t.shape) for layer in TABLE for t in layer.tensors}
    tensors |= {"block.10.weight": torch.ones(3), "block.2.weight": torch.full((2, 2), 2.0, dtype=torch.float16)}
    save_file(tensors, tmp_path / "model.safetensors")
    source = look_at(tmp_path / "model.safetensors")
    assert [layer.name for layer in source.table] == ["embedding", "block.0", "block.1", "block.2", "block.10", "head"]
    order = ["head", "embedding", "block.0", "block.1", "block.2", "block.10"]
    source = look_at(tmp_path, order)
    assert [layer.name for layer in source.table] == order
    kinds = {"rule": Rule.SGD, "parameters": Precision.FP32, "moments": Precision.BF16}
    with import_model(source, [tmp_path / "s"], **kinds) as store:
        assert [section.name for section in store.geometry.sections] == ["master", "first"]
        assert store.state.trained == 0
        assert store.geometry.table[4].tensors[0].shape == (2, 2)
        export(store, tmp_path / "again")
    again = look_at(tmp_path / "again")
    there = {tensor.name: again.weights(tensor) for layer in again.table for tensor in layer.tensors}
    assert torch.equal(there["block.2.weight"], torch.full((2, 2), 2.0))
    assert torch.equal(there["embedding.weight"], tensors["embedding.weight"])


def test_import_of_a_language_model_of_the_hub(tmp_path: Path) -> None:
    """Its blocks lie two modules deep, its order is not that of the alphabet, and not all it has is trained."""
    half = torch.ones(2, dtype=torch.bfloat16)
    block = ("self_attn.q_proj.weight", "self_attn.o_proj.weight", "mlp.experts.0.weight", "input_layernorm.weight")
    tensors = {f"model.layers.{i}.{name}": half.clone() for i in range(11) for name in block}
    tensors |= {f"model.{name}.weight": half.clone() for name in ("embed_tokens", "norm")} | {"lm_head.weight": half}
    tensors |= {
        "model.embeddings.position_ids": torch.arange(5),
        "model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(4),
        "model.layers.0.self_attn.bias": torch.ones(4, dtype=torch.bool),
    }
    save_file(tensors, tmp_path / "model.safetensors")
    table = look_at(tmp_path).table
    blocks = [f"model.layers.{i}" for i in range(11)]
    assert [layer.name for layer in table] == ["model.embed_tokens", *blocks, "model.norm", "lm_head"]
    assert [t.name for t in table[1].tensors] == sorted(f"model.layers.0.{name}" for name in block)
    assert sum(layer.numel for layer in table) == 2 * (11 * len(block) + 3)


def test_import_of_an_encoder_and_a_decoder(tmp_path: Path) -> None:
    names = [
        "shared.weight", "encoder.block.0.layer.0.weight", "encoder.block.0.layer.1.weight",
        "encoder.final_layer_norm.weight", "decoder.block.0.layer.0.weight", "decoder.final_layer_norm.weight",
        "lm_head.weight",
    ]  # fmt: skip
    save_file({name: torch.ones(1) for name in names}, tmp_path / "model.safetensors")
    order = [layer.name for layer in look_at(tmp_path).table]
    assert order.index("encoder.block.0") < order.index("encoder.final_layer_norm") < order.index("decoder.block.0")
    assert order[-1] == "lm_head" and set(order) >= {"shared", "decoder.final_layer_norm"}


def test_what_torch_saved_is_told_from_a_damaged_file(tmp_path: Path) -> None:
    torch.save({"w": torch.ones(2)}, tmp_path / "m.pt")
    save_file({"w": torch.ones(2)}, tmp_path / "whole.safetensors")
    (tmp_path / "cut.safetensors").write_bytes((tmp_path / "whole.safetensors").read_bytes()[:-1])
    taken = r"name a (.safetensors )?file, .*DCP checkpoint; load what torch.save wrote, and save it with safetensors"
    for name, said in (
        ("m.pt", rf"m.pt: cannot be read, it is no safetensors file: {taken}"),
        ("absent", rf"absent: no safetensors there: {taken}"),
        ("cut.safetensors", r"cut.safetensors: cannot be read: .* not fully covered: it is damaged, or a part of it: "),
    ):
        with pytest.raises(StoreError, match=said):
            look_at(tmp_path / name)


def test_import_refuses_what_makes_no_sense(tmp_path: Path) -> None:
    cases: list[tuple[str, str, bytes | None, list[str]]] = [
        ("missing", "no safetensors there", None, []),
        ("mismatch", "cannot be read", b"not a model at all", []),
    ]
    for kind, match, raw, layers in cases:
        folder = tmp_path / match.replace(" ", "-")
        folder.mkdir()
        if raw is not None:
            (folder / "x.safetensors").write_bytes(raw)
        with pytest.raises(StoreError, match=match) as caught:
            look_at(folder, layers)
        assert caught.value.kind == kind
    save_file({"a.w": torch.ones(2), "b.w": torch.ones(2)}, tmp_path / "m.safetensors")
    with pytest.raises(StoreError, match="belongs to no layer"):
        look_at(tmp_path / "m.safetensors", ["a"])
    with pytest.raises(StoreError, match="has no parameters"):
        look_at(tmp_path / "m.safetensors", ["a", "b", "c"])
    (tmp_path / INDEX).write_text('{"weight_map": 7}')
    with pytest.raises(StoreError, match="the index makes no sense"):
        look_at(tmp_path)


def test_the_verbs(trained: list[Path], tmp_path: Path) -> None:
    run = CliRunner().invoke
    places = [str(place) for place in trained]
    options = [part for place in places for part in ("--store", place)]
    shown = json.loads(run(app, ["optimizer", "inspect", "--json", *reversed(places)]).stdout)
    assert (shown["training passes"], shown["parameters"], shown["devices"]) == (5, TABLE.numel, 2)
    assert shown["snapshots"] == [{"name": "third", "trained": 3}]
    assert [layer["name"] for layer in shown["layers"]] == [layer.name for layer in TABLE]
    assert "embedding" in run(app, ["optimizer", "inspect", *places]).stdout
    assert run(app, ["optimizer", "verify", *places]).exit_code == 0

    assert run(app, ["optimizer", "export", str(tmp_path / "out"), *options, "--moments"]).exit_code == 0
    made = str(tmp_path / "made")
    imported = run(app, ["optimizer", "import", str(tmp_path / "out"), "--store", made])
    assert "embedding, block.0, block.1, head" in imported.stdout
    assert run(app, ["optimizer", "snapshot", "now", "--store", made]).exit_code == 0
    listed = json.loads(run(app, ["optimizer", "snapshots", "--json", made]).stdout)["snapshots"]
    assert listed == [{"name": "now", "trained": 5}]
    assert "now" in run(app, ["optimizer", "snapshots", made]).stdout
    assert run(app, ["optimizer", "snapshot", "later", "--store", made]).exit_code == 0
    assert run(app, ["optimizer", "prune", "--keep", "1", "--store", made]).stdout.split() == ["dropped", "now"]
    assert run(app, ["optimizer", "prune", "--keep", "1", "--store", made]).stdout == ""
    assert run(app, ["optimizer", "verify", made]).exit_code == 0
    assert run(app, ["optimizer", "restore", "third", *options]).stdout.strip() == "training passes: 3"
    assert run(app, ["optimizer", "drop", "third", *options]).exit_code == 0
    assert json.loads(run(app, ["optimizer", "inspect", "--json", *places]).stdout)["snapshots"] == []

    for wrong, words in (
        (["inspect", str(tmp_path / "nowhere")], "no such file"),
        (["export", str(tmp_path / "o"), *options, "--snapshot", "x"], "no snapshot 'x'"),
        (
            ["import", str(tmp_path / "out"), "--store", made],
            "a store already: name another place, or overwrite what is there: with --overwrite,",
        ),
        (["restore", "third", *options], "no snapshot 'third'"),
        (["snapshot", "", *options], "a snapshot cannot have the name ''"),
        (["snapshot", "a\nb", *options], "a snapshot cannot have the name"),
        (["inspect", places[0]], "number 1 is not among"),
        (["inspect", "/dev/null"], "is neither a file nor a block device"),
        (["export", "/dev/null/o", *options], "cannot be written: Not a directory"),
    ):
        failed = run(app, ["optimizer", *wrong])
        assert isinstance(failed.exception, OptimizerError)
        assert words in str(failed.exception)
    for wrong, words in (
        (["--optimizer", "magic"], "--optimizer magic: give one of adam, sgd"),
        (["--parameters", "int8"], "--parameters int8: give one of fp32, bf16"),
        (["--moments", "fp16"], "--moments fp16: give one of fp32, bf16"),
        (["--model", "math:pi"], "pi is no function"),
        (["--model", "math"], "--model math: name MODULE:FUNCTION"),
        (["--model", ":make"], "--model :make: name MODULE:FUNCTION"),
        (["--model", ".math:make"], "--model .math:make: name MODULE:FUNCTION"),
        (["--model", "builtins:dict"], "it makes dict"),
    ):
        failed = run(app, ["optimizer", "import", str(tmp_path), "--store", made, *wrong], env={"COLUMNS": "200"})
        assert failed.exit_code == 2 and words in failed.output


@pytest.mark.parametrize(
    ("module", "text", "words"),
    [
        (
            "model_fails",
            "def make():\n    raise KeyError('width')\n",
            r"KeyError at .*model_fails\.py:2: 'width'; it is",
        ),
        ("module_fails", "\nprint(1 / 0)\n", r"ZeroDivisionError at .*module_fails\.py:2: .*; its module is imported"),
        ("no_module", "\ndef make(:\n", r"SyntaxError: .* \(no_module\.py, line 2\); its module is imported"),
    ],
)
def test_a_model_that_cannot_be_made_is_told_with_its_place(
    module: str, text: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / f"{module}.py").write_text(text)
    command = ["optimizer", "import", str(tmp_path), "--store", str(tmp_path / "s"), "--model", f"{module}:make"]
    failed = CliRunner().invoke(app, command).exception
    assert isinstance(failed, OptimizerError)
    assert re.search(f"^--model {module}:make: {words}", str(failed))
    assert not (tmp_path / "s").exists()


def test_an_export_to_a_full_disk_says_so(trained: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(interchange, "save_file", full)
    with Store.open(trained) as store:
        with pytest.raises(StoreError, match="cannot be written: No space left on device") as caught:
            export(store, tmp_path / "out")
        assert caught.value.kind == "full"
        assert caught.value.path == str(tmp_path / "out")
        monkeypatch.undo()
        assert export(store, tmp_path / "out").exists()  # what was begun is no obstacle


def test_verify_says_where_the_damage_is(trained: list[Path]) -> None:
    with Store.open(trained) as store:
        shard = next(iter(store.geometry.shards(0, store.geometry.sections[1])))
        offset = store._manifest.plane_offset(shard.device, store.version(0).plane) + shard.offset
    with trained[shard.device].open("r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 1]))
    ran = CliRunner().invoke(app, ["optimizer", "verify", "--json", *map(str, trained)])
    assert ran.exit_code == 3
    (damage,) = json.loads(ran.stdout)["damage"]
    assert (damage["state"], damage["layer"], damage["section"]) == ("present", 0, "master")
    assert str(trained[shard.device]) in damage["message"]
