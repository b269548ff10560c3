"""The cache of compiled programs: whatever changes what a compiler makes has a place of its own."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import text_format

from catchment import checkout
from catchment.controlplane.client import P4Info
from catchment.controlplane.programs import cache as programs
from catchment.controlplane.programs import compilation
from catchment.controlplane.programs.compilation import Compilation
from catchment.controlplane.programs.pipeline_config import PipelineConfig
from catchment.controlplane.topology import Target, star
from catchment.processors import processors
from catchment.wire.generated import p4info_pb2
from catchment.wire.generated.constants import MAX_WORKERS


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Mapping[str, str]]:
    """The definitions of each compilation; the compiler itself only notes them."""
    made: list[Mapping[str, str]] = []

    def note(self: Compilation, folder: Path) -> PipelineConfig:
        made.append(dict(self.defines))
        results = self.results(folder)
        results.p4info.write_text(repr((str(self.target), sorted(self.defines.items()))))
        results.device_config.write_bytes(self.program.read_bytes())
        return results

    monkeypatch.setenv("CATCHMENT_BUILD_DIR", str(tmp_path / "build"))
    monkeypatch.setattr(Compilation, "run", note)
    return made


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A program in which there is nothing that a compiler would look at."""
    program = tmp_path / "x.p4"
    program.write_text("nothing")
    return program


def test_each_set_of_definitions_is_compiled_once(compiled: list[Mapping[str, str]], source: Path) -> None:
    wanted: list[dict[str, str]] = [{}, {"LANES": "8"}, {"LANES": "64"}, {"LANES": "64", "JOBS": "2"}, {"JOBS": "2"}]
    first = [programs.compile_for(Target.EMBEDDED, source, defines) for defines in wanted]
    again = [programs.compile_for(Target.EMBEDDED, source, defines) for defines in wanted]
    assert first == again
    assert compiled == wanted
    for defines, config in zip(wanted, first, strict=True):
        assert config.p4info.read_text() == repr(("embedded", sorted(defines.items())))


def test_what_another_user_has_compiled_is_taken_without_writing(
    compiled: list[Mapping[str, str]], source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = programs.compile_for(Target.EMBEDDED, source, {})

    def refused(path: Path) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(programs, "locked", refused)
    assert programs.compile_for(Target.EMBEDDED, source, {}) == first
    with pytest.raises(compilation.CompileError, match=r"lock: Permission denied; CATCHMENT_BUILD_DIR=FOLDER names"):
        programs.compile_for(Target.EMBEDDED, source, {"LANES": "8"})
    assert len(compiled) == 1


def test_a_checkout_of_another_user_is_built_in_a_folder_of_ones_own(
    compiled: list[Mapping[str, str]], source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = programs.compile_for(Target.EMBEDDED, source, {})
    monkeypatch.setattr(programs, "_SHIPPED", programs.cache_folder())
    monkeypatch.delenv("CATCHMENT_BUILD_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "own"))
    monkeypatch.setattr(checkout, "OTHERS", True)
    assert checkout.build_folder() == tmp_path / "own" / "catchment"
    own = programs.compile_for(Target.EMBEDDED, source, {})
    assert own.device_config.is_relative_to(tmp_path / "own")
    assert own.device_config.read_bytes() == theirs.device_config.read_bytes()
    assert len(compiled) == 1
    monkeypatch.setattr(checkout, "OTHERS", False)
    assert checkout.build_folder() == checkout.ROOT / "build"


def test_each_kind_of_processors_has_its_own(
    compiled: list[Mapping[str, str]], source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that machines share has programs with instructions that only some of them know."""
    names = set()
    for kind in ["native-0123", "native-4567", "x86-64-v3", "native-0123"]:
        monkeypatch.setattr(programs, "processors", lambda kind=kind: kind)
        names.add(programs.compile_for(Target.EMBEDDED, source, {}).device_config)
    assert len(names) == len(compiled) == 3


def test_what_a_package_brings_along_is_for_any_processors(
    compiled: list[Mapping[str, str]], source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = programs.compile_for(Target.EMBEDDED, source, {}).device_config.parent
    monkeypatch.setattr(programs, "_SHIPPED", tmp_path / "package")
    monkeypatch.setattr(programs, "processors", lambda: "others")
    made.parent.rename(programs._SHIPPED)  # for the processors from before, which are not these
    programs.compile_for(Target.EMBEDDED, source, {})
    assert len(compiled) == 2
    (programs._SHIPPED / made.name).rename(programs._SHIPPED / made.name.removesuffix(f"-{processors()}"))
    monkeypatch.setattr(programs, "processors", lambda: "yet others")
    taken = programs.compile_for(Target.EMBEDDED, source, {})
    assert taken.device_config.is_relative_to(programs.cache_folder())
    assert len(compiled) == 2


def test_what_a_package_brings_along_is_done_when_all_of_it_is_copied(
    compiled: list[Mapping[str, str]], source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever sees that it is done takes no lock; and a copy for which a disk has no room is made again."""
    first = programs.compile_for(Target.EMBEDDED, source, {})
    monkeypatch.setattr(programs, "_SHIPPED", programs.cache_folder())
    monkeypatch.setenv("CATCHMENT_BUILD_DIR", str(tmp_path / "own"))
    real = shutil.copytree
    seen: list[bool] = []

    def copytree(*arguments: Any, **options: Any) -> Path:
        to = real(*arguments, **options)
        seen.append(programs._is_done(to))
        if len(seen) == 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return to

    monkeypatch.setattr(shutil, "copytree", copytree)
    with pytest.raises(compilation.CompileError, match=r"^x\.p4 is not compiled: No space left on device; CATCHMENT"):
        programs.compile_for(Target.EMBEDDED, source, {})
    own = programs.compile_for(Target.EMBEDDED, source, {})
    assert own.device_config.is_relative_to(tmp_path / "own")
    assert own.device_config.read_bytes() == first.device_config.read_bytes()
    assert seen == [False, False] and len(compiled) == 1


def test_externs_are_part_of_the_program(compiled: list[Mapping[str, str]], source: Path, tmp_path: Path) -> None:
    """A header of externs, and its text, tell one compilation from another."""
    externs = tmp_path / "x.hpp"
    externs.write_text("// first")
    programs.compile_for(Target.EMBEDDED, source, {})
    first = programs.compile_for(Target.EMBEDDED, source, {}, externs=externs)
    assert programs.compile_for(Target.EMBEDDED, source, {}, externs=externs) == first
    externs.write_text("// second")
    assert programs.compile_for(Target.EMBEDDED, source, {}, externs=externs) != first
    assert len(compiled) == 3


def test_a_changed_source_or_include_is_compiled_anew(compiled: list[Mapping[str, str]], tmp_path: Path) -> None:
    (tmp_path / "include").mkdir()
    source, header = tmp_path / "x.p4", tmp_path / "include" / "part.p4"
    source.write_text('#include "include/part.p4"\n')
    header.write_text("one")
    before = programs.compile_for(Target.EMBEDDED, source, {})
    header.write_text("two")
    after = programs.compile_for(Target.EMBEDDED, source, {})
    assert before != after
    source.write_text('#include "include/part.p4"\n// changed\n')
    assert programs.compile_for(Target.EMBEDDED, source, {}) not in (before, after)
    assert len(compiled) == 3


@pytest.mark.parametrize("written", ['"part.p4"', "<part.p4>"])
def test_what_is_included_from_elsewhere_is_part_of_the_program(
    compiled: list[Mapping[str, str]], written: str, tmp_path: Path
) -> None:
    """A change of a file in a folder of `include`, and another folder, tell one compilation from another."""
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
        (folder / "part.p4").write_text('#include "deeper.p4"\n')
        (folder / "deeper.p4").write_text("first")
    source = tmp_path / "x.p4"
    source.write_text(f"#include {written}\n")
    first = programs.compile_for(Target.EMBEDDED, source, {}, include=folders[:1])
    assert programs.compile_for(Target.EMBEDDED, source, {}, include=folders[:1]) == first
    (folders[0] / "deeper.p4").write_text("second")
    second = programs.compile_for(Target.EMBEDDED, source, {}, include=folders[:1])
    third = programs.compile_for(Target.EMBEDDED, source, {}, include=folders[1:])
    assert len({config.device_config for config in (first, second, third)}) == len(compiled) == 3


def test_each_target_has_its_own(
    compiled: list[Mapping[str, str]], source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compilation, "_p4c", lambda: "/bin/true")
    configs = {target: programs.compile_for(target, source, {}) for target in (Target.EMBEDDED, Target.BMV2)}
    assert configs[Target.EMBEDDED].device_config != configs[Target.BMV2].device_config
    assert len(compiled) == 2


def test_a_switch_gets_its_p4info_in_binary(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The text takes a third of a second of every start of a switch; it is read once."""
    message = p4info_pb2.P4Info(tables=[{"preamble": {"id": 7, "name": "ingress.jobs", "alias": "jobs"}, "size": 64}])

    def compile_(self: Compilation, folder: Path) -> PipelineConfig:
        results = self.results(folder)
        results.p4info.write_text(text_format.MessageToString(message))
        results.device_config.write_bytes(b"code")
        return results

    monkeypatch.setenv("CATCHMENT_BUILD_DIR", str(tmp_path / "build"))
    monkeypatch.setattr(Compilation, "run", compile_)
    switch = star(["a"], program=source).switch("s1")
    first = programs.program_for(switch)
    monkeypatch.delattr(text_format, "Parse")
    assert programs.program_for(switch) == first
    assert P4Info.load(first.p4info).message == message
    built = {"LANES": str(switch.lanes), "SLOTS": str(switch.slots), "MAX_WORKERS": str(switch.workers)}
    text = programs.compile_for(switch.target, source, built).p4info
    assert text.read_text() == text_format.MessageToString(message)
    assert {path.name for path in text.parent.iterdir()} == {"x.p4info.txt", "x.p4info.bin", "x.so", "lock", "done"}


def test_a_program_is_built_for_the_workers_of_its_switch(compiled: list[Mapping[str, str]], source: Path) -> None:
    (switch,) = star(["w0"], program=source).switches.values()
    built = {"LANES": str(switch.lanes), "SLOTS": str(switch.slots)}
    programs.compile_for(switch.target, source, built)
    programs.compile_for(switch.target, source, {**built, "MAX_WORKERS": "32"})
    assert len(compiled) == 2
    assert [programs.is_compiled(replace(switch, workers=n)) for n in (MAX_WORKERS, 32, 31)] == [True, True, False]
