"""Reading tokens one after the other, and knowing which names are types."""

from __future__ import annotations

from catchment.softswitch.compiler.diagnostics import Refusal
from catchment.softswitch.compiler.lexer import Kind, Token
from catchment.softswitch.compiler.source import Location

_NAME_KEYWORDS = frozenset(("actions", "apply", "entries", "key", "priority", "state", "type", "list"))


class Cursor:
    """A position in a token list, and the scopes of the names declared so far.

    P4's grammar depends on which names are types (`(T) x`) and which take type arguments (`f<T>(x)`), so declarations
    are
    noted as they are read.
    """

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._position = 0
        self._types: list[dict[str, bool]] = [{}]
        self._templates: set[str] = set()

    # tokens

    @property
    def token(self) -> Token:
        """The token not yet read."""
        return self._tokens[self._position]

    @property
    def loc(self) -> Location:
        """The source position of the token not yet read."""
        return self.token.loc

    def peek(self, ahead: int = 1) -> Token:
        """A token further on; END beyond the end."""
        return self._tokens[min(self._position + ahead, len(self._tokens) - 1)]

    def next(self) -> Token:
        """Reads a token."""
        token = self.token
        if token.kind is not Kind.END:
            self._position += 1
        return token

    def at(self, *texts: str) -> bool:
        """Whether the next token is one of these keywords or symbols."""
        return self.token.kind in (Kind.KEYWORD, Kind.SYMBOL) and self.token.text in texts

    def at_end(self) -> bool:
        """Whether every token has been read."""
        return self.token.kind is Kind.END

    def accept(self, text: str) -> bool:
        """Reads this keyword or symbol if it is next."""
        if self.at(text):
            self.next()
            return True
        return False

    def expect(self, text: str, where: str = "") -> Token:
        """Reads this keyword or symbol, or refuses the program."""
        if not self.at(text):
            raise self.unexpected(f"`{text}`", where)
        return self.next()

    def unexpected(self, wanted: str, where: str = "") -> Refusal:
        """The refusal of the next token, where `wanted` could have stood."""
        return Refusal(self.loc, f"syntax error: unexpected {self.token}, expected {wanted}{where and ' ' + where}")

    def save(self) -> int:
        """The position, to come back to with `restore`."""
        return self._position

    def restore(self, position: int) -> None:
        """Goes back to a saved position."""
        self._position = position

    # names

    def at_name(self, ahead: int = 0) -> bool:
        """Whether a token may be a name: an identifier, or a keyword that is reserved only in its own place."""
        token = self.peek(ahead)
        return token.kind is Kind.NAME or (token.kind is Kind.KEYWORD and token.text in _NAME_KEYWORDS)

    def name(self, what: str = "a name") -> Token:
        """Reads a name."""
        if not self.at_name():
            raise self.unexpected(what)
        return self.next()

    def push_scope(self) -> None:
        """Opens a scope of names."""
        self._types.append({})

    def pop_scope(self) -> None:
        """Closes the innermost scope."""
        self._types.pop()

    def declare(self, name: str, is_type: bool, is_template: bool = False) -> None:
        """Notes a declaration in the innermost scope."""
        self._types[-1][name] = is_type
        if is_template:
            self._templates.add(name)

    def is_type(self, name: str) -> bool:
        """Whether `name` means a type here."""
        return next((scope[name] for scope in reversed(self._types) if name in scope), False)

    def is_template(self, name: str) -> bool:
        """Whether anything called `name` takes type arguments."""
        return name in self._templates
