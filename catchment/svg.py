"""SVG documents: what every picture of this project begins with."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape


def document(title: str, width: float, height: float, style: str, parts: Iterable[str]) -> str:
    """A picture as an SVG document, on white, for pages and viewers with a dark background too.

    Args:
        title: what the picture shows, for readers that do not see it.
        width: of the picture, in pixels, as `height`.
        height: of the picture.
        style: CSS of the parts.
        parts: elements, in the order in which they are drawn.
    """
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}">',
        f"<title>{escape(title)}</title><style>{style}</style>",
        '<rect width="100%" height="100%" rx="8" fill="#fff"/>',
    )
    return "\n".join([*head, *parts, "</svg>"]) + "\n"
