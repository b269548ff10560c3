"""The run-time libraries of the compiler's sanitizers."""

from __future__ import annotations

import subprocess


def runtime(library: str) -> str:
    """The path of a library that the compiler brings, such as ``libasan.so``."""
    return subprocess.run(
        ["g++", f"-print-file-name={library}"], check=True, capture_output=True, text=True
    ).stdout.strip()
