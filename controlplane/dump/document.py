"""The text of a document: YAML with one entry a line, or JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from catchment.controlplane.errors import ControlPlaneError

FORMAT = 1
SECTIONS = ("tables", "defaults", "profiles", "multicast_groups", "clone_sessions", "meters")
_INT = "tag:yaml.org,2002:int"
_FLOAT = "tag:yaml.org,2002:float"
_TIME = "tag:yaml.org,2002:timestamp"


class DumpError(ControlPlaneError):
    """A document cannot be read, or says something that a switch cannot hold; tells where."""


class Line(dict[str, Any]):
    """A mapping that is written on one line."""


class Document(dict[str, Any]):
    """A document that came from a file.

    Attributes:
        source: the file.
        lines: path of a part -> its line, from 1.
    """

    def __init__(self, content: Mapping[str, Any], *, source: Path, lines: Mapping[str, int]) -> None:
        super().__init__(content)
        self.source = source
        self.lines = lines


def to_text(document: Mapping[str, Any], *, as_json: bool = False) -> str:
    """The document as text."""
    if as_json:
        return json.dumps(document, indent=2) + "\n"
    return str(yaml.dump(dict(document), Dumper=_Dumper, sort_keys=False, width=1 << 20, allow_unicode=True))


def load_document(path: Path) -> Document:
    """Read a document from a YAML or JSON file.

    Raises:
        DumpError: it cannot be read, or is none of ours; names the line.
    """
    try:
        text = path.read_text("utf-8")
        root = yaml.compose(text, Loader=_Loader)
        content = yaml.load(text, Loader=_Loader)
    except OSError as error:
        raise DumpError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise DumpError(f"{path} is neither YAML nor JSON: {error}") from None
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise DumpError(f"{path}{line}: neither YAML nor JSON: {error.problem}") from None
    except yaml.YAMLError as error:
        raise DumpError(f"{path} is neither YAML nor JSON: {error}") from None
    except RecursionError:
        raise DumpError(f"{path} is nested too deeply for a dump of a switch") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise DumpError(f"{path} is not a dump of a switch: it does not begin with `format: {FORMAT}`")
    document = Document(content, source=path, lines=dict(_lines(root, "", set())))
    if unknown := set(document) - {"format", *SECTIONS}:
        where = place(document, str(min(unknown, key=str)))
        raise DumpError(f"{where} is unknown; there are {', '.join(SECTIONS)}")
    for name in SECTIONS:
        if not isinstance(document.setdefault(name, {}), dict):
            raise DumpError(f"{place(document, name)}: not a mapping")
    return document


def place(document: Mapping[str, Any], path: str) -> str:
    """The position of something in a document, for a message: with file and line where it came from a file."""
    if not isinstance(document, Document):
        return path
    line = document.lines.get(path)
    return f"{document.source}{'' if line is None else f':{line}'}: {path}"


def _lines(node: yaml.Node | None, path: str, seen: set[int]) -> Iterator[tuple[str, int]]:
    """The line of what is below a node, by its path: `tables.acl[3]`, `multicast_groups[7]`.

    What stands at several places (a YAML alias, which may even hold itself) has the lines of the first.
    """
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            below = f"{path}.{key.value}".lstrip(".")
            yield below, key.start_mark.line + 1
            yield f"{path}[{key.value}]", key.start_mark.line + 1
            yield from _lines(value, below, seen)
    elif isinstance(node, yaml.SequenceNode):
        for number, value in enumerate(node.value):
            yield f"{path}[{number}]", value.start_mark.line + 1


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_line(dumper: yaml.SafeDumper, line: Line) -> yaml.Node:
    return dumper.represent_mapping("tag:yaml.org,2002:map", line.items(), flow_style=True)


_Dumper.add_representer(Line, _represent_line)


class _Loader(yaml.SafeLoader):
    """Refuses a key that is there twice, which YAML would silently resolve."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"{key!r} is there twice", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


# Addresses are text, though YAML 1.1 takes 10:20:30:40:50:59 for a number of base 60.
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in {_INT, _FLOAT, _TIME}]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(_INT, re.compile(r"-?(?:0|[1-9][0-9]*)$|0x[0-9a-fA-F]+$|0b[01]+$"), list("-0123456789"))
