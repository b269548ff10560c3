"""SVG documents."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape


def document(title: str, width: int, height: int, style: str, parts: Iterable[str]) -> str:
    """A picture on white, for pages and viewers with a dark background; `title` is for readers that do not see it."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
        f"<title>{escape(title)}</title><style>{style}</style>",
        '<rect width="100%" height="100%" rx="8" fill="#fff"/>',
    )
    return "\n".join([*head, *parts, "</svg>"]) + "\n"
