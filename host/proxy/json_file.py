"""JSON files that people give the proxies: whatever is no JSON in one is said with its line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from catchment.host.proxy.errors import ProxyError


def read_json(path: Path, todo: str) -> dict[str, Any]:
    """The object in a JSON file.

    Args:
        path: the file.
        todo: what to do where it is not there or no JSON, for messages.

    Raises:
        ProxyError: it cannot be read, or is no JSON object.
    """
    try:
        found = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ProxyError(f"cannot read {path}: {error.strerror}: {todo}") from None
    except UnicodeDecodeError:
        raise ProxyError(f"{path} is not text in UTF-8: {todo}") from None
    except json.JSONDecodeError as error:
        raise ProxyError(f"{path}:{error.lineno}: not JSON: {error.msg}: {todo}") from None
    except RecursionError:
        raise ProxyError(f"{path} is nested too deeply: {todo}") from None
    except ValueError:  # a number of more digits than Python converts
        raise ProxyError(f"{path}: a number in it is too long: {todo}") from None
    if not isinstance(found, dict):
        raise ProxyError(f"{path} is no JSON object: {todo}")
    return found
