"""Reads YAML (and so JSON) together with the line of every part.

YAML 1.1 takes 12:30:00:00:00:01 for a number of base 60, and the last of two equal keys without a word; here addresses
and dates stay text, and a key that is there twice is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from catchment.controlplane.errors import ControlPlaneError

_INT = "tag:yaml.org,2002:int"
_AS_TEXT = {_INT, "tag:yaml.org,2002:float", "tag:yaml.org,2002:timestamp"}
_LONGEST_NUMBER = 3000
"""Characters: Python makes no number of more than 4300 digits out of text, and no text of it either."""


class DocumentError(ControlPlaneError):
    """A file that people wrote cannot be used; says where in it and what would be right."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What sort of document a file should be.

    Attributes:
        name: in words, for messages: "topology".
        error: what is raised.
    """

    name: str
    error: type[DocumentError]


@dataclass(frozen=True, slots=True)
class Tree:
    """A document that was read.

    Attributes:
        kind: what it should be.
        source: the file.
        root: its nodes; None when the file is empty.
        lines: path of a part (`tables.acl[3]`, `multicast_groups[7]`) -> its line, from 1.
    """

    kind: Kind
    source: Path
    root: yaml.Node | None
    lines: dict[str, int]

    def error(self, line: int, message: str) -> DocumentError:
        """The error at a line."""
        return self.kind.error(f"{self.source}:{line}: {message}")

    def values(self) -> Any:
        """The document as mappings, lists, numbers and text; None when the file is empty."""
        if self.root is None:
            return None
        loader = _Loader("")
        try:
            return loader.construct_document(self.root)
        except yaml.MarkedYAMLError as error:
            raise self.error(_line(error), f"not YAML: {error.problem}") from None
        finally:
            loader.dispose()


def read(path: Path, kind: Kind) -> Tree:
    """Read a file.

    Raises:
        DocumentError: of the kind's class: it cannot be read, is not YAML, has a key twice, or too long a number.
    """
    tree = Tree(kind, path, None, {})
    try:
        root = yaml.compose(path.read_text("utf-8"), Loader=_Loader)
        if root is None:
            return tree
        tree = Tree(kind, path, root, {})
        tree.lines.update(_lines(tree, root, "", set()))
    except OSError as error:
        raise kind.error(f"cannot read {kind.name} {path}: {error.strerror}") from None
    except yaml.MarkedYAMLError as error:
        raise tree.error(_line(error), f"not YAML: {error.problem}") from None
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise tree.error(1, f"not YAML: {error}") from None
    except RecursionError:
        raise tree.error(1, f"nested too deeply for a {kind.name}") from None
    return tree


def _line(error: yaml.MarkedYAMLError) -> int:
    return int(error.problem_mark.line) + 1 if error.problem_mark else 1


def _lines(tree: Tree, node: yaml.Node, path: str, seen: set[int]) -> Iterator[tuple[str, int]]:
    """The line of what is below a node, by its path.

    What stands at several places (a YAML alias, which may even hold itself) has the lines of the first.
    """
    if id(node) in seen:
        return
    seen.add(id(node))
    _check_length(tree, node)
    if isinstance(node, yaml.MappingNode):
        first: dict[Any, int] = {}
        for key, value in node.value:
            _check_length(tree, key)
            below, line = f"{path}.{key.value}".lstrip("."), key.start_mark.line + 1
            for spelling in {key.value, _number(key)} if isinstance(key, yaml.ScalarNode) else ():
                if spelling in first:
                    raise tree.error(line, f"{below} is given twice (first in line {first[spelling]})")
                first[spelling] = line
            yield below, line
            yield f"{path}[{key.value}]", line
            yield from _lines(tree, value, below, seen)
    elif isinstance(node, yaml.SequenceNode):
        for number, value in enumerate(node.value):
            yield f"{path}[{number}]", value.start_mark.line + 1
            yield from _lines(tree, value, f"{path}[{number}]", seen)


def _check_length(tree: Tree, node: yaml.Node) -> None:
    if node.tag == _INT and len(node.value) > _LONGEST_NUMBER:
        said = f"{node.value[:8]}... is a number of {len(node.value)} digits, and may have {_LONGEST_NUMBER}"
        raise tree.error(node.start_mark.line + 1, said)


def _number(key: yaml.ScalarNode) -> int | str:
    """What a key stands for: 7 and 0x7 are the same one."""
    return int(key.value, 0) if key.tag == _INT else str(key.value)


class _Loader(yaml.SafeLoader):
    """Addresses and dates are text."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _AS_TEXT]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(_INT, re.compile(r"-?(?:0|[1-9][0-9]*)$|0x[0-9a-fA-F]+$|0b[01]+$"), list("-0123456789"))
