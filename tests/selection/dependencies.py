"""Which file needs which: read from imports, includes, build files and from names that stand in texts.

torch imports a process group's package when it is asked for the group by name: `init_process_group("NAME")` needs what
pyproject.toml says of NAME.

A reader that errs, errs towards more: a name that several files have leads to all of them, unless its path from the
root stands there.
"""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from catchment.checkout import ROOT

_MODULE = re.compile(r"\bcatchment(?:\.\w+)+")
_FILE_NAME = re.compile(r"(?:[\w.-]+/)*[\w-]+(?:\.[\w-]+)+")
_WORD = re.compile(r"[A-Za-z_][\w-]+")
_GROUP = re.compile(r"""init_process_group\(\s*["'](\w+)["']""")
_LITERAL = re.compile(r'"(\w+)"')
_TARGET = re.compile(r"(?:add_library|add_executable|pybind11_add_module)\(\s*([\w-]+)")
_TEXTS = {".py", ".pyi", ".cpp", ".hpp", ".h", ".c", ".p4", ".sv", ".svh", ".toml", ".yaml", ".txt", ".tcl", ".pml"}
_LEADING = (ast.Import, ast.ImportFrom, ast.BinOp)
_SAID_EVERYWHERE = {"CMakeLists.txt", "__init__.py", "__main__.py", "conftest.py", "README.md"}


def files_of_the_checkout() -> tuple[str, ...]:
    """What git knows or would add, links apart, as paths below the root."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout.splitlines()  # fmt: skip
    return tuple(name for name in listed if (ROOT / name).is_file() and not (ROOT / name).is_symlink())


def dependencies() -> dict[str, set[str]]:
    """File -> the files that it needs itself."""
    return _Reader(files_of_the_checkout()).read()


def closure(arrows: dict[str, set[str]], name: str) -> set[str]:
    """All files that `name` leads to along the arrows, `name` too: what it needs or, turned round, what needs it."""
    found, waiting = {name}, [name]
    while waiting:
        for other in arrows.get(waiting.pop(), set()) - found:
            found.add(other)
            waiting.append(other)
    return found


def users(needs: dict[str, set[str]]) -> dict[str, set[str]]:
    """File -> the files that need it themselves: `dependencies()` the other way round."""
    turned = defaultdict(set)
    for name, needed in needs.items():
        for other in needed:
            turned[other].add(name)
    return turned


class _Reader:
    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = frozenset(names)
        self.by_name: dict[str, set[str]] = defaultdict(set)
        self.by_stem: dict[str, set[str]] = defaultdict(set)
        self.below: dict[str, set[str]] = defaultdict(set)
        for name in names:
            path = PurePosixPath(name)
            if path.name not in _SAID_EVERYWHERE:
                self.by_name[path.name].add(name)
            if path.suffix == ".py":
                if path.parts[0] == "tests":
                    self.by_stem[path.stem].add(name)
            else:
                for folder in path.parents:
                    self.below[folder.as_posix()].add(name)
        project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
        points = project["entry-points"]["torch.backends"].items()
        self.groups = {name: place.partition(":")[0] for name, place in points}
        self.targets: dict[str, set[str]] = defaultdict(set)
        for name in names:
            if PurePosixPath(name).name == "CMakeLists.txt":
                for target in _TARGET.findall((ROOT / name).read_text("utf-8")):
                    self.targets[target].add(name)

    def read(self) -> dict[str, set[str]]:
        needs = {}
        for name in self.names:
            path = PurePosixPath(name)
            if path.suffix not in _TEXTS:
                continue
            text = (ROOT / name).read_text("utf-8")
            found = {other for other in self._named(text) if not other.endswith(".py") or _are_close(name, other)}
            if path.suffix == ".py":
                nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, _LEADING)]
                found.update(self._imported(text, nodes), self._paths(nodes, path.parent))
                if path.name == "__init__.py":
                    found |= {f"{path.parent}/{word}.py" for word in _LITERAL.findall(text)} & self.names
                if path.name.startswith("test_"):
                    # What lies beside a test and is no Python is its input.
                    found |= self.below[path.parent.as_posix()]
                    # Its fixtures come from there; what tests/conftest.py needs, every test does.
                    folders = (folder for folder in path.parents if len(folder.parts) > 1)
                    found |= {f"{folder}/conftest.py" for folder in folders} & self.names
            needs[name] = found - {name}
        return needs

    def _named(self, text: str) -> Iterator[str]:
        for word in set(_FILE_NAME.findall(text)):
            if "/" in word and word in self.names:
                yield word
            else:
                yield from self.by_name.get(word.rpartition("/")[2], ())
        for word in set(_WORD.findall(text)):
            yield from self.targets.get(word.removeprefix("lib"), ())

    def _imported(self, text: str, nodes: list[ast.AST]) -> Iterator[str]:
        modules = set(_MODULE.findall(text))
        modules |= {self.groups[name] for name in _GROUP.findall(text) if name in self.groups}
        for node in nodes:
            if isinstance(node, ast.Import):
                modules |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                modules |= {f"{node.module}.{alias.name}" for alias in node.names}
        for module in modules:
            parts = module.split(".")
            yield from self.by_stem.get(parts[0], ())
            parts = parts[1:] if parts[0] == "catchment" else parts
            for length in range(1, len(parts) + 1):
                place = "/".join(parts[:length])
                yield from {f"{place}.py", f"{place}/__init__.py"} & self.names
            yield from {f"{'/'.join(parts)}/__main__.py"} & self.names

    def _paths(self, nodes: list[ast.AST], home: PurePosixPath) -> Iterator[str]:
        """Files and folders that are put together with `/`: all that is no Python in such a folder."""
        for node in nodes:
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
                parts = _joined(node)
                for root in (PurePosixPath(), home, *home.parents):
                    place = (root / PurePosixPath(*parts)).as_posix() if parts else "."
                    if place != ".":
                        yield from {place} & self.names
                        yield from self.below.get(place, ())


def _are_close(one: str, other: str) -> bool:
    """Whether a text that names a Python file by its last part alone can mean it: both are tests, or neighbours."""
    first, second = PurePosixPath(one), PurePosixPath(other)
    return first.parent == second.parent or first.parts[0] == second.parts[0] == "tests"


def _joined(node: ast.expr) -> list[str]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        last = [node.right.value] if isinstance(node.right, ast.Constant) and isinstance(node.right.value, str) else []
        return [*_joined(node.left), *last]
    return []


def is_test(name: str) -> bool:
    """Whether pytest collects the file."""
    path = Path(name)
    return path.parts[0] == "tests" and path.name.startswith("test_") and path.suffix == ".py"
