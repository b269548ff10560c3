"""The text of a document: YAML with one entry a line, or JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from catchment.controlplane.documents import DocumentError, Kind, read

FORMAT = 1
SECTIONS = ("tables", "defaults", "profiles", "multicast_groups", "clone_sessions", "meters")


class DumpError(DocumentError):
    """A document cannot be read, or says something that a switch cannot hold; tells where."""


_KIND = Kind("dump of a switch", DumpError)


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
    tree = read(path, _KIND)
    content = tree.values()
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise tree.error(1, f"not a {_KIND.name}: it does not begin with `format: {FORMAT}`")
    document = Document(content, source=path, lines=tree.lines)
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


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_line(dumper: yaml.SafeDumper, line: Line) -> yaml.Node:
    return dumper.represent_mapping("tag:yaml.org,2002:map", line.items(), flow_style=True)


_Dumper.add_representer(Line, _represent_line)
