"""`catchment proxy`: plans from a profile, and the step that a group of stores has."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from catchment.cli import app
from catchment.controlplane.errors import ControlPlaneError
from catchment.host.layers import Homes, LayerSpec, LayerTable
from catchment.host.optimizer import Adam
from catchment.host.optimizer.store import Geometry, Precision, Store
from catchment.host.optimizer.store.group_commit import GroupFolder, snapshot_name
from catchment.host.proxy import LinkCurve
from catchment.host.proxy.profile_file import write_profile
from catchment.host.proxy.snapshots import Part, SnapshotFolder


def _json(*words: str) -> dict[str, object]:
    done = CliRunner().invoke(app, [*words, "--json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    found: dict[str, object] = json.loads(done.output)
    return found


def test_the_command_plans_from_a_profile(tmp_path: Path) -> None:
    path = tmp_path / "profile.json"
    sizes = tuple(1 << bits for bits in range(10, 27, 2))
    near, far = LinkCurve.linear(1e-6, 9e9, sizes), LinkCurve.linear(5e-6, 16e9, sizes)
    write_profile(path, {"w0": {"near": near, "far": far}, "w1": {"near": near, "far": far}})
    layers = ["--layers", "1000000,2000000,4000000", "--backward", "0.001", "--among-workers", "1e9"]
    facts = _json("proxy", "plan", str(path), *layers)
    routing = facts["routing"]
    assert isinstance(routing, dict)
    assert routing["w0"] == routing["w1"]
    assert (routing["w0"]["latency"], routing["w0"]["bandwidth"]) == ("near", "far")
    assert 1 << 14 < routing["w0"]["threshold"] < 1 << 18
    assert "answers first" in routing["w0"]["reason"]
    dual = facts["dual"]
    assert isinstance(dual, dict)
    assert dual["seconds of a step"] <= min(dual["seconds, all by the workers"], dual["seconds, all by the proxies"])
    shown = CliRunner().invoke(app, ["proxy", "plan", str(path)], catch_exceptions=False)
    assert "near | far" in shown.output
    for words in (["--layers", "x"], ["--layers", "5"], [*layers, "--layers", f"5,{10**400}"]):
        with pytest.raises(ControlPlaneError, match=r"whole numbers of bytes|rates are positive|a layer of 1000.*most"):
            CliRunner().invoke(app, ["proxy", "plan", str(path), *words], catch_exceptions=False)


def test_the_command_shows_a_groups_step_and_goes_back_to_it(tmp_path: Path) -> None:
    table = LayerTable((LayerSpec.of(0, "a", [("a.w", (30,)), ("a.b", (20,))]),))
    homes = Homes.spread(table, 2)
    folder = GroupFolder(tmp_path / "group")
    (tmp_path / "group").mkdir()
    assert _json("proxy", "snapshot", str(tmp_path / "group")) == {"step": None, "nodes": []}
    places = []
    for root in range(2):
        part = homes.part(root)
        place = tmp_path / f"{root}.store"
        geometry = Geometry(part, 1, Adam().kind, Precision.BF16)
        with Store.create([place], geometry, lambda layer, part=part: torch.ones(part[layer].numel)) as store:  # type: ignore[misc]
            store.commit(3, snapshot=snapshot_name(3))
            folder.vote(store)
            store.commit(4 + root)
        places += ["-s", str(place)]
    found = _json("proxy", "snapshot", str(tmp_path / "group"))
    assert found["step"] == 3
    done = CliRunner().invoke(app, ["proxy", "restore", str(tmp_path / "group"), *places], catch_exceptions=False)
    assert done.output == "training passes: 3\n"
    with Store.open([tmp_path / "1.store"]) as store:
        assert store.state.trained == 3
    with pytest.raises(ControlPlaneError, match=r"stores of the optimizer nodes \[0\], the group has 2"):
        CliRunner().invoke(app, ["proxy", "restore", str(tmp_path / "group"), *places[:2]], catch_exceptions=False)


def test_the_command_shows_the_step_of_proxies_with_parameters(tmp_path: Path) -> None:
    values = [memoryview(b"0123"), memoryview(b"4567")]
    part = Part(8, 77, (4, 4), zlib.crc32(b"01234567"))
    SnapshotFolder(tmp_path).save(0, part, values, 2)
    assert _json("proxy", "snapshot", str(tmp_path)) == {"step": None, "nodes": []}
    SnapshotFolder(tmp_path).save(1, part, values, 2)
    assert _json("proxy", "snapshot", str(tmp_path)) == {"step": 8, "proxies": 2, "crc32": part.crc32}
    shown = CliRunner().invoke(app, ["proxy", "snapshot", str(tmp_path)], catch_exceptions=False)
    assert "step-8/proxy-1" in shown.output


@pytest.mark.parametrize("words", [("snapshot", "FILE"), ("restore", "FILE", "-s", "0.store")])
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("absent", "there is no folder {}: name the folder that"),
        ("file", "{} is no folder: name the folder that"),
        ("file/below", "there is no folder {}: name the folder that"),
        ("x" * 300, "cannot look at {}: File name too long: name the folder that"),
    ],
    ids=["absent", "a file", "below a file", "long"],
)
def test_a_groups_folder_that_is_none_is_said(tmp_path: Path, words: tuple[str, ...], name: str, said: str) -> None:
    (tmp_path / "file").write_text("")
    assert said.format(tmp_path / name) in complaint(tmp_path / name, words)


def complaint(path: Path, words: tuple[str, ...]) -> str:
    """What a verb says of a file, which stands for FILE."""
    with pytest.raises(ControlPlaneError) as error:
        CliRunner().invoke(app, ["proxy", *(str(path) if w == "FILE" else w for w in words)], catch_exceptions=False)
    return str(error.value)


_DEEP = b"[" * 100_000
_WRONG: list[tuple[bytes, str]] = [
    (b"\x7fELF\xff\x00", "wrong.json is not text in UTF-8: write"),
    (b'{\n"a": }', "wrong.json:2: not JSON: Expecting value: write"),
    (_DEEP, "wrong.json is nested too deeply: write"),
    (b"1" * 5000, "wrong.json: a number in it is too long: write"),
    (b"[]", "wrong.json is no JSON object: write"),
]


@pytest.mark.parametrize("words", [("plan", "FILE"), ("profile", "FILE", "w0"), ("run", "FILE", "0")])
@pytest.mark.parametrize(("content", "said"), _WRONG, ids=["binary", "text", "deep", "long", "list"])
def test_what_is_no_json_is_said_with_its_place(
    tmp_path: Path, words: tuple[str, ...], content: bytes, said: str
) -> None:
    path = tmp_path / "wrong.json"
    path.write_bytes(content)
    assert complaint(path, words).startswith(f"{path.parent}/{said}")


_NO_JOB, _NO_GROUP = ("profile", "FILE", "w0"), ("run", "FILE", "0")


@pytest.mark.parametrize(
    ("words", "content", "said"),
    [
        (_NO_JOB, '{"members": {}}', "does not describe host w0; it has none: write it with"),
        (_NO_JOB, '{"members": {"a": {}, "b": {}}}', "does not describe host w0; it has a, b: write it with"),
        (_NO_JOB, '{"name": "train"}', "describes no job: it has no `members`: write it with"),
        (_NO_GROUP, '{"clients": 1}', "describes no group of proxies: addresses is missing: write it as"),
        (_NO_GROUP, '{"adresses": []}', "describes no group of proxies: adresses is unknown: write it as"),
        (
            _NO_GROUP,
            '{"addresses": ["a:1"], "secret": 7, "clients": 1}',
            "describes no group of proxies: a value is of a wrong type: write it as",
        ),
    ],
)
def test_a_file_that_describes_something_else_is_said(
    tmp_path: Path, words: tuple[str, ...], content: str, said: str
) -> None:
    path = tmp_path / "wrong.json"
    path.write_text(content)
    assert complaint(path, words).startswith(f"{path} {said}")


_ENDS = {"local": ["127.0.0.1", 0], "switch": ["127.0.0.1", 9]}
_SUMS = {"gen": 1, "workers": 2}
_WORKER = {"role": "worker", "wid": 0, "gradients": _SUMS, "parameters": {**_SUMS, "gen": 2}, **_ENDS}
_PEER = {"role": "peer", "wid": 0, "sums": _SUMS, **_ENDS}


@pytest.mark.parametrize(
    ("member", "said"),
    [
        ({}, ": `role` is missing"),
        ({"role": "peer"}, ": `role` is 'peer'; of use here is worker or root"),
        ({"role": "worker"}, ": `wid` is missing"),
        ({"role": "root"}, ": `local` is missing"),
        ({"parts": 5}, ": `parts` is 5, not an object of jobs by label"),
        ({"parts": {"opt0": {}}}, ", part opt0: `role` is missing"),
        ({"parts": {"opt0": []}}, ", part opt0: [] describes no member"),
        ({**_WORKER, "wid": "0"}, ": `wid` is '0', not a whole number"),
        ({**_WORKER, "wid": 2}, ": worker index 2 of 2 workers"),
        ({**_WORKER, "local": 7}, ": `local` is 7, not a list"),
        ({**_WORKER, "switch": ["127.0.0.1"]}, ": `switch` is ['127.0.0.1'], not [ADDRESS, PORT]"),
        ({**_WORKER, "local": ["here", 1]}, ": `local`: the local address ('here', 1) is not one"),
        ({**_WORKER, "gradients": {"gen": 0, "workers": 2}}, ": `gradients`: Stream.gen is 0"),
        ({**_WORKER, "parameters": {"lane": 4}}, ": `parameters`: Stream.__init__() got an unexpected"),
        ({**_WORKER, "port": 4}, ": `port` is 4, not a string"),
        ({**_WORKER, "local": ["127.0.0.1", 5], "port": "udp"}, ": a port 'udp'"),
    ],
)
def test_a_job_file_that_cannot_be_measured_is_said_with_its_field(
    tmp_path: Path, member: dict[str, object], said: str
) -> None:
    path = tmp_path / "wrong.json"
    path.write_text(json.dumps({"members": {"w0": member}}))
    found = complaint(path, _NO_JOB)
    assert found.startswith(f"{path}: host w0{said}")
    assert found.endswith("write it with `catchment job show NAME --json`")


@pytest.mark.parametrize(
    ("member", "said"),
    [
        ({"role": "peer"}, ": `wid` is missing"),
        ({**_PEER, "local": None}, ": `local` is None, not a list"),
        ({**_PEER, "sums": []}, ": `sums` is [], not an object"),
        ({"parts": {"": _PEER}}, ": `role` is missing"),
        (_WORKER, ": `role` is 'worker'; of use here is peer"),
    ],
)
def test_a_job_file_that_no_proxy_can_sum_by_is_said_with_its_field(
    tmp_path: Path, member: dict[str, object], said: str
) -> None:
    group, path = tmp_path / "group.json", tmp_path / "wrong.json"
    addresses = [str(tmp_path / "0"), str(tmp_path / "1")]
    group.write_text(
        json.dumps({"addresses": addresses, "clients": 1, "secret": "known to this test", "sync": "switch"})
    )
    path.write_text(json.dumps({"members": {"x0": member}}))
    found = complaint(path, ("run", str(group), "0", "--job", "FILE", "--host", "x0"))
    assert found.startswith(f"{path}: host x0{said}")
    assert found.endswith("write it with `catchment job show NAME --json`")
