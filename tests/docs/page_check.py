"""What can be known of a command that no test can run: it is shell, and our own command has its verbs and options."""

from __future__ import annotations

import re
import shlex
import subprocess
from itertools import takewhile

import typer
from page_script import Command, PageError
from typer.core import TyperGroup

from catchment.cli import app
from catchment.cli.lazy import LazyCommand

_ASSIGNMENT = re.compile(r"\w+=.*")
_CONTROL = frozenset(("|", "||", "&&", "&", ";", ">", ">>", "<"))


def check(command: Command) -> None:
    """Check a command without running it.

    Raises:
        PageError: it is no shell, or a verb or an option of `catchment` does not exist.
    """
    shell = subprocess.run(["bash", "-n", "-c", command.text], capture_output=True, text=True, check=False)
    if shell.returncode != 0:
        raise PageError(f"`{command.text}` is no shell: {shell.stderr}")
    lexer = shlex.shlex(command.text, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    words = list(lexer)
    while words:
        call = list(takewhile(lambda word: word not in _CONTROL, words))
        del words[: len(call) + 1]
        while call and (call[0] in ("sudo", "env") or _ASSIGNMENT.fullmatch(call[0])):
            del call[0]
        if call and call[0] == "catchment":
            _check_verb(command, call[1:])


def _check_verb(command: Command, words: list[str]) -> None:
    verb = typer.main.get_command(app)
    context = verb.context_class(verb, info_name="catchment")
    while isinstance(verb, TyperGroup):
        name = words.pop(0) if words else ""
        found = verb.get_command(context, name)
        if found is None:
            raise PageError(f"`{command.text}`: there is no verb {name!r} in {context.command_path!r}")
        verb = found.loaded() if isinstance(found, LazyCommand) else found
        context = verb.context_class(verb, info_name=name, parent=context)
    if verb.context_settings.get("ignore_unknown_options"):  # another program takes them
        return
    known = {option for parameter in verb.params for option in (*parameter.opts, *parameter.secondary_opts)}
    for word in words:
        option = word.partition("=")[0]
        if option.startswith("-") and option != "-" and option not in known:
            raise PageError(f"`{command.text}`: {context.command_path!r} has no option {option}")
