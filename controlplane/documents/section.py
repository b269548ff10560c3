"""A mapping of a document, read key by key with checks that name file and line."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Sequence

import yaml

from catchment.controlplane.documents.reader import DocumentError, Tree

_MAC = re.compile(r"(?:[0-9a-f]{2}:){5}[0-9a-f]{2}")
_NO_MAC = "00:00:00:00:00:00"


class Section:
    """A mapping of the document, read key by key; `finish` complains about keys that the reader has not read."""

    def __init__(self, node: yaml.Node, tree: Tree, path: str) -> None:
        self._tree = tree
        self._path = path
        self._node = node
        self._read: set[str] = set()
        self._values: dict[str, tuple[yaml.Node, yaml.Node]] = {}
        if not isinstance(node, yaml.MappingNode):
            raise self.error(node, f"`{path or 'the file'}` must be a mapping of keys to values")
        for key, value in node.value:
            self._values[key.value if isinstance(key, yaml.ScalarNode) else "?"] = (key, value)

    @classmethod
    def root(cls, tree: Tree, keys: str) -> Section:
        """The document itself, which must be a mapping; `keys` says in the error what belongs there."""
        if tree.root is None:
            raise tree.error(1, f"empty file; a {tree.kind.name} has {keys}")
        return cls(tree.root, tree, "")

    def error(self, node: yaml.Node, message: str) -> DocumentError:
        """An error at a node."""
        return self._tree.error(node.start_mark.line + 1, message)

    def error_at(self, key: str, message: str) -> DocumentError:
        """An error at the value of a key (at the mapping when the key is absent)."""
        node = self._values[key][1] if key in self._values else self._node
        return self.error(node, f"{self._name(key)}: {message}")

    def error_in(self, node: yaml.Node, key: str, message: str) -> DocumentError:
        """An error at a part of the value of a key."""
        return self.error(node, f"{self._name(key)}: {message}")

    def _name(self, key: str) -> str:
        return f"{self._path}.{key}" if self._path else key

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[str]:
        """Keys in the file's order."""
        return iter(self._values)

    def section(self, key: str) -> Section:
        """A nested mapping; it must be there."""
        return Section(self._take(key), self._tree, self._name(key))

    def sections(self, key: str) -> list[Section]:
        """A nested mapping, or a list of them; it must be there."""
        node = self._take(key)
        if not isinstance(node, yaml.SequenceNode):
            return [self.section(key)]
        if not node.value:
            raise self.error_at(key, "must not be empty")
        return [Section(item, self._tree, f"{self._name(key)}[{at}]") for at, item in enumerate(node.value)]

    def names(self, key: str) -> list[tuple[str, yaml.Node]]:
        """A list of single values, each with its place."""
        node = self._take(key)
        if not isinstance(node, yaml.SequenceNode) or not all(isinstance(n, yaml.ScalarNode) for n in node.value):
            raise self.error_at(key, "must be a list of names, as in [s1, s2]")
        if not node.value:
            raise self.error_at(key, "must not be empty")
        return [(str(item.value), item) for item in node.value]

    def text(self, key: str, default: str | None = None, choices: Sequence[str] = ()) -> str:
        """A scalar as text."""
        if key not in self._values and default is not None:
            return default
        node = self._take(key)
        if not isinstance(node, yaml.ScalarNode) or not node.value:
            raise self.error_at(key, "must be a single value")
        value = str(node.value)
        if choices and value not in choices:
            raise self.error_at(key, f"{value} is not one of: {', '.join(choices)}")
        return value

    def integer(self, key: str, default: int | None, low: int, high: int) -> int:
        """A number between two bounds, both allowed."""
        if key not in self._values and default is not None:
            return default
        text = self.text(key)
        try:
            value = int(text, 0)
        except ValueError:
            raise self.error_at(key, f"{text} is not a whole number") from None
        if not low <= value <= high:
            raise self.error_at(key, f"{text} is not between {low} and {high}")
        return value

    def flag(self, key: str) -> bool:
        """`true` or `false`; False when left out."""
        return self.text(key, "false", ("true", "false")) == "true"

    def mac(self, key: str) -> str:
        """A unicast MAC address in lower case."""
        value = self.text(key).lower()
        if not _MAC.fullmatch(value):
            raise self.error_at(key, f"{value} is not a MAC address such as 02:00:00:00:00:01")
        if int(value[:2], 16) & 1:
            raise self.error_at(key, f"{value} is a multicast address; use one such as 02:...")
        if value == _NO_MAC:
            raise self.error_at(key, f"{value} is no interface's address; use one such as 02:...")
        return value

    def interface(self, key: str) -> ipaddress.IPv4Interface:
        """An IPv4 address with its prefix length, as 10.0.0.1/24."""
        text = self.text(key)
        try:
            value = ipaddress.IPv4Interface(text)
        except ValueError as error:
            raise self.error_at(key, f"not an IPv4 address with prefix: {error}") from None
        if "/" not in text:
            raise self.error_at(key, f"add the prefix length, as in {text}/24")
        return value

    def lists(self, key: str, least: int, most: int, form: str) -> Iterator[tuple[list[str], yaml.Node]]:
        """A sequence of sequences of `least` to `most` scalars, each with its place; none when the key is absent.

        `form` says what each looks like, for messages.
        """
        if key not in self._values:
            return
        node = self._take(key)
        if not isinstance(node, yaml.SequenceNode):
            raise self.error_at(key, f"must be a list of {form}")
        for item in node.value:
            scalars = [n.value for n in item.value] if isinstance(item, yaml.SequenceNode) else []
            if not least <= len(scalars) <= most or not all(isinstance(s, str) for s in scalars):
                raise self.error(item, f"{self._name(key)}: must be {form}")
            yield scalars, item

    def _take(self, key: str) -> yaml.Node:
        self._read.add(key)
        if key not in self._values:
            raise self.error(self._node, f"{self._name(key)} is missing")
        return self._values[key][1]

    def finish(self, allowed: Sequence[str]) -> None:
        """Refuse keys that are not allowed here."""
        for name, (key, _) in self._values.items():
            if name not in allowed:
                raise self.error(key, f"{self._name(name)} is unknown; known: {', '.join(allowed)}")
