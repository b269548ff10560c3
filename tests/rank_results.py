"""What rank processes say at their end."""

from __future__ import annotations

import json
import subprocess
from typing import Any


def results(members: dict[str, subprocess.Popen[str]], seconds: float) -> dict[str, dict[str, Any]]:
    """What each rank has to say at its end; kills those that have not ended then.

    Args:
        members: name of a rank -> its process, whose last line is an object in JSON.
        seconds: how long each is waited for.
    """
    said = {}
    try:
        for name, member in members.items():
            output, complaint = member.communicate(timeout=seconds)
            assert output, f"{name} ended with {member.returncode}:\n{complaint[-3000:]}"
            said[name] = json.loads(output.splitlines()[-1])
    finally:
        for member in members.values():
            member.kill()
            member.wait()
    return said
