"""Verbs that are imported when they are called: `--help` and completion name them all, and load none.

What a verb does in a line is read out of its source: the docstring of its function, or the `help` of its `typer.Typer`.
"""

from __future__ import annotations

import ast
import importlib
import inspect
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup

_FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Verb:
    """The place of a verb.

    Attributes:
        module: its module in this package.
        attribute: its function, or the `typer.Typer` of its group.
        settings: how a function's command line is parsed.
    """

    module: str
    attribute: str = "app"
    settings: dict[str, Any] = field(default_factory=dict)

    def load(self, name: str) -> Any:
        """The command, for which its module is imported."""
        found = getattr(importlib.import_module(f"{__package__}.{self.module}"), self.attribute)
        if isinstance(found, typer.Typer):
            group = typer.main.get_group(found)
            group.name = name
            return group
        single = typer.Typer(add_completion=False)
        single.command(name, context_settings=self.settings)(found)
        return typer.main.get_command(single)

    def help(self) -> str:
        """What the command says of itself, without importing it.

        Raises:
            LookupError: it says nothing.
        """
        for node in ast.parse((_FOLDER / f"{self.module}.py").read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name == self.attribute:
                return ast.get_docstring(node) or ""
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == self.attribute:
                words = {word.arg: word.value for word in getattr(node.value, "keywords", ())}
                return inspect.cleandoc(ast.literal_eval(words["help"]))
        raise LookupError(f"no {self.attribute} in cli/{self.module}.py")


class LazyCommand(TyperCommand):
    """Stands for a verb in lists; turns into it when a command line reaches it."""

    def __init__(self, name: str, verb: Verb) -> None:
        self.verb = verb
        super().__init__(name, callback=None)

    @property
    def help(self) -> str:
        return self.verb.help()

    @help.setter
    def help(self, text: str | None) -> None:
        """The base class has nothing to set."""

    def loaded(self) -> Any:
        """The verb itself, for which its module is imported."""
        return self.verb.load(self.name or "")

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        return self.loaded().make_context(info_name, args, parent, **extra)


class LazyGroup(TyperGroup):
    """A group of verbs; subclasses say which."""

    verbs: ClassVar[dict[str, Verb]] = {}

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = {name: LazyCommand(name, verb) for name, verb in self.verbs.items()}
