"""Not a test: a member that joins its job through the controller; `controlled_member.py TASK.json`, lines of JSON out.

It starts its messages over whenever the job's generations are replaced, and stays until its input is closed.
"""

from __future__ import annotations

import contextlib
import json
import select
import sys
from pathlib import Path
from typing import Any

from member import run
from slots_member import run as all_reduce

from catchment.host import EndpointError
from catchment.host.membership import Credentials, Membership, MembershipError


def say(**event: Any) -> None:
    print(json.dumps(event, default=str), flush=True)


def input_closed() -> bool:
    return bool(select.select([sys.stdin], [], [], 0)[0])


def until_done(task: dict[str, Any], member: Membership) -> None:
    """Push and pull everything in one epoch, then stay for the others."""
    description = member.description
    task = {**task, "description": {"role": description.role, "wid": description.wid}}
    with contextlib.ExitStack() as exits:
        if description.role == "slots":
            wrong = all_reduce(task, exits.enter_context(member.reducer(timeout=task["timeout"], spin=0.0)))
        else:
            wrong = run(task, exits.enter_context(member.endpoint(timeout=task["timeout"])))
        say(done=True, epoch=member.epoch, wrong=wrong, cause=member.cause)
        while not input_closed():
            if member.superseded(0.05):
                raise EndpointError("the generations were replaced", kind="closed")


def main() -> None:
    task = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    credentials = Credentials.of(Path(task["certificates"]), task["host"])
    member = Membership.join(
        controller=task["controller"], job=task["job"], host=task["host"], token=task["token"],
        credentials=credentials, timeout=30.0,
    )  # fmt: skip
    say(joined=True, epoch=member.epoch)
    while True:
        try:
            until_done(task, member)
            break
        except (EndpointError, TimeoutError) as error:
            try:
                if not member.superseded(5.0):
                    say(error=str(error), trouble=member.trouble)
                    return
            except MembershipError as ended:
                say(error=str(ended), trouble=member.trouble)
                return
    member.leave()


if __name__ == "__main__":
    main()
