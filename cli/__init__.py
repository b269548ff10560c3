"""The `catchment` command: one file per group of verbs (docs/cli.md).

This is where the parts are put together: only here does the control plane's package call the
compiler, Mininet and the demo, and it imports them when a verb needs them.
"""

from __future__ import annotations

import sys

import typer

from catchment.cli import (
    capture,
    controller,
    cosim,
    counter,
    demo,
    doctor,
    fault,
    glm,
    group,
    job,
    meter,
    net,
    optimizer,
    p4,
    register,
    shell,
    stats,
    switch,
    table,
    topology,
    traffic,
)
from catchment.controlplane.errors import ControlPlaneError

app = typer.Typer(
    name="catchment",
    help="Training in the network: switches, jobs and what they count.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(p4.app, name="p4")
app.add_typer(switch.app, name="switch")
app.add_typer(net.app, name="net")
app.add_typer(controller.app, name="controller")
app.add_typer(job.app, name="job")
app.add_typer(table.app, name="table")
app.add_typer(fault.app, name="fault")
app.add_typer(topology.app, name="topology")
app.add_typer(optimizer.app, name="optimizer")
app.add_typer(glm.app, name="glm")
app.add_typer(group.group_app, name="group")
app.add_typer(group.clone_app, name="clone")
app.add_typer(counter.app, name="counter")
app.add_typer(register.app, name="register")
app.add_typer(meter.app, name="meter")
app.command("stats")(stats.stats)
app.command("diagnose")(stats.diagnose)
app.command("doctor")(doctor.doctor)
app.command("capture")(capture.capture)
app.command("traffic")(traffic.traffic)
app.command("shell")(shell.shell)
app.command("cosim")(cosim.cosim)
app.command("demo", context_settings=demo.PASS_THROUGH)(demo.demo)


def main() -> None:
    """Run a verb; what an operator can act on is one message and exit code 1."""
    try:
        app(prog_name="catchment")
    except ControlPlaneError as error:
        print(f"catchment: {error}", file=sys.stderr)
        sys.exit(1)
    except BrokenPipeError:
        sys.exit(1)
