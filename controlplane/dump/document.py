"""The text of a document: YAML with one entry a line, or JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from controlplane.errors import ControlPlaneError

FORMAT = 1
SECTIONS = ("tables", "defaults", "profiles", "multicast_groups", "clone_sessions", "meters")
_INT = "tag:yaml.org,2002:int"
_FLOAT = "tag:yaml.org,2002:float"
_TIME = "tag:yaml.org,2002:timestamp"


class DumpError(ControlPlaneError):
    """A document cannot be read, or says something that a switch cannot hold; tells where."""


class Line(dict[str, Any]):
    """A mapping that is written on one line."""


def to_text(document: Mapping[str, Any], *, as_json: bool = False) -> str:
    """The document as text."""
    if as_json:
        return json.dumps(document, indent=2) + "\n"
    return str(yaml.dump(dict(document), Dumper=_Dumper, sort_keys=False, width=1 << 20, allow_unicode=True))


def load_document(path: Path) -> dict[str, Any]:
    """Read a document from a YAML or JSON file.

    Raises:
        DumpError: it cannot be read, or is none of ours; names the line or the section.
    """
    try:
        document = yaml.load(path.read_text("utf-8"), Loader=_Loader)
    except OSError as error:
        raise DumpError(f"cannot read {path}: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise DumpError(f"{path} is neither YAML nor JSON: {error}") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise DumpError(f"{path} is not a dump of a switch: it does not begin with `format: {FORMAT}`")
    if unknown := set(document) - {"format", *SECTIONS}:
        raise DumpError(f"{path}: unknown: {', '.join(sorted(map(str, unknown)))}; there are {', '.join(SECTIONS)}")
    for name in SECTIONS:
        if not isinstance(document.setdefault(name, {}), dict):
            raise DumpError(f"{path}: {name} is not a mapping")
    return document


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
