"""The generated pages of the reference say what the command, the headers and the switch programs say of themselves."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from catchment.checkout import ROOT
from catchment.cli.reference import c_api, c_headers, commands, tables
from catchment.cli.reference.pages import PAGES
from catchment.controlplane.client import P4Info


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_what_its_source_says(page: str) -> None:
    written = (ROOT / "docs" / "reference" / page).read_text("utf-8")
    assert written == PAGES[page](), "run python -m catchment.cli.reference"


def test_every_verb_and_its_options_are_there() -> None:
    text = commands.render()
    assert "\n### catchment job create\n" in text
    assert "| `--loss` |" in text.split("\n### catchment fault set\n")[1].split("\n### ")[0]


@pytest.mark.parametrize("program", tables.PROGRAMS)
def test_every_table_key_action_and_parameter_has_a_meaning(program: str) -> None:
    info = P4Info.load(tables.PROGRAMS[program][0])
    without = []
    for table in info.message.tables:
        documented = {
            table.preamble.alias: table.preamble,
            **{f"key {field.name}": field for field in table.match_fields},
        }
        for name, action in info.actions_of(table).items():
            if name != "NoAction":
                documented |= {name: action.preamble, **{f"{name}.{param.name}": param for param in action.params}}
        without += [f"{table.preamble.alias}: {name}" for name, thing in documented.items() if not thing.doc.brief]
    assert not without, without


@pytest.mark.parametrize("header", c_api.HEADERS.values(), ids=lambda header: header.stem)
def test_every_declaration_of_a_header_is_explained(header: Path) -> None:
    found = c_headers.read(header).declarations
    assert not [declaration.name for declaration in found if not declaration.meaning]
    assert not [member.text for declaration in found for member in declaration.members if not member.meaning]
    text = header.read_text("utf-8")
    assert sum(declaration.kind == "function" for declaration in found) == text.count("_PUBLIC") - 1
    bodies = re.findall(r"^(?:typedef )?(?:struct|enum)\b.*\{", text, re.MULTILINE)
    assert sum(declaration.kind in {"struct", "enum"} for declaration in found) == len(bodies)


def _header(tmp_path: Path, text: str) -> Path:
    header = tmp_path / "x.h"
    header.write_text(f"/* A header. */\n#include <stdint.h>\n\n{text}")
    return header


def test_a_struct_is_read_with_its_comments(tmp_path: Path) -> None:
    text = """\
/* A thing.
 * Of two. */
typedef struct thing {
  int a; /* first */
  /* Of both. */
  int b;
  const char* c; /* a text, that
                    goes on */
} thing;
X_PUBLIC int use(thing* t,
                 int n);
"""
    struct, function = c_headers.read(_header(tmp_path, text)).declarations
    assert (struct.name, struct.meaning) == ("thing", "A thing. Of two.")
    members = [(member.text, member.meaning) for member in struct.members]
    assert members == [("int a", "first"), ("int b", "Of both."), ("const char* c", "a text, that goes on")]
    assert (function.text, function.meaning) == ("int use(thing* t, int n);", "")


def test_what_the_reader_does_not_know_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(c_headers.HeaderError, match=r"x\.h: cannot read 'union odd \{ int a; \};'"):
        c_headers.read(_header(tmp_path, "union odd { int a; };\n"))
