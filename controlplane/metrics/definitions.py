"""The metrics: their names, labels and meanings. Endpoint, dashboard and documentation follow this list."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric.

    Attributes:
        name: without the `_total` that counters get on the wire.
        help: one sentence.
        labels: in order.
        is_counter: it only grows; else it is a gauge.
        unit: Grafana's name of the unit, of a counter per second.
        panel: title of its panel on the dashboard.
        legend: its lines' labels there, in Grafana's notation.
    """

    name: str
    help: str
    labels: tuple[str, ...]
    is_counter: bool
    unit: str
    panel: str
    legend: str

    @property
    def wire_name(self) -> str:
        """The name that a query uses."""
        return f"{self.name}_total" if self.is_counter else self.name


_JOB = ("switch", "job", "stream", "gen", "member", "port")
_PORT = ("switch", "port", "peer")
_FLOW = "{{job}} {{stream}} from {{member}}"
_WHERE = "{{switch}} port {{port}} ({{peer}}) {{direction}}"

UP = Metric(
    "catchment_switch_up", "1 when the switch answers.", ("switch",), False, "bool_on_off", "Switches", "{{switch}}"
)
JOB_FRAMES = Metric("catchment_job_frames", "Frames of a job's stream that arrived at a port.", _JOB, True, "pps",
                    "Frames of jobs by member", _FLOW)  # fmt: skip
JOB_BYTES = Metric("catchment_job_bytes", "Bytes of a job's stream that arrived at a port.", _JOB, True, "Bps",
                   "Bytes of jobs by member", _FLOW)  # fmt: skip
DROPS = Metric("catchment_drops", "Frames that the program dropped, by reason.", ("switch", "reason"), True, "pps",
               "Drops by reason", "{{switch}} {{reason}}")  # fmt: skip
ACK_LAG = Metric("catchment_ack_lag_frames", "Frames that a member expects less than the furthest of its stream.",
                 ("switch", "job", "stream", "member"), False, "short", "Acknowledgements behind the furthest member",
                 "{{job}} {{stream}} {{member}}")  # fmt: skip
CREDIT_LAG = Metric("catchment_credit_lag_frames", "Frames that a member takes less than the furthest of its stream.",
                    ("switch", "job", "stream", "member"), False, "short", "Credit behind the furthest member",
                    "{{job}} {{stream}} {{member}}")  # fmt: skip
PORT_UP = Metric("catchment_port_up", "1 when the port's link is up.", _PORT, False, "bool_on_off", "Ports",
                 "{{switch}} port {{port}} ({{peer}})")  # fmt: skip
PORT_FRAMES = Metric("catchment_port_frames", "Frames in and out of a port.", (*_PORT, "direction"), True, "pps",
                     "Frames by port", _WHERE)  # fmt: skip
PORT_BYTES = Metric("catchment_port_bytes", "Bytes in and out of a port.", (*_PORT, "direction"), True, "Bps",
                    "Bytes by port", _WHERE)  # fmt: skip
PORT_DROPS = Metric("catchment_port_drops", "Frames of a port that the switch itself dropped, by cause.",
                    (*_PORT, "cause"), True, "pps", "Drops by port and cause",
                    "{{switch}} port {{port}} ({{peer}}) {{cause}}")  # fmt: skip
PORT_CONSUMED = Metric("catchment_port_consumed_frames", "Frames of a port that the program sent nowhere: vectors that "
                       "it added up, and what catchment_drops_total has.", _PORT, True, "pps",
                       "Frames taken in by port", "{{switch}} port {{port}} ({{peer}})")  # fmt: skip
POLL_AGE = Metric("catchment_switch_poll_age_seconds", "Seconds since the exporter has looked at the switch.",
                  ("switch",), False, "s", "Age of what is shown", "{{switch}}")  # fmt: skip
POLL_SECONDS = Metric("catchment_switch_poll_seconds", "Seconds that the exporter's latest look at the switch took.",
                      ("switch",), False, "s", "Length of a look at a switch", "{{switch}}")  # fmt: skip

_SWITCH = ("switch",)
SWITCH_KEPT = Metric("catchment_controller_switch_up", "1 when the controller keeps the switch right.", _SWITCH,
                     False, "bool_on_off", "Switches under the controller", "{{switch}}")  # fmt: skip
RESTORES = Metric("catchment_controller_restores", "How often the controller loaded a switch's program and entries.",
                  _SWITCH, True, "short", "Restores of switches", "{{switch}}")  # fmt: skip
RESTORE_SECONDS = Metric("catchment_controller_restore_seconds", "Seconds that the latest restore took.", _SWITCH,
                         False, "s", "Length of a restore", "{{switch}}")  # fmt: skip
COMPARISONS = Metric("catchment_controller_comparisons", "How often a switch was compared with what it should hold.",
                     _SWITCH, True, "short", "Comparisons of switches", "{{switch}}")  # fmt: skip
REPAIRS = Metric("catchment_controller_repairs", "How often a connected switch held what it should not.", _SWITCH,
                 True, "short", "Drift put right", "{{switch}}")  # fmt: skip
EPOCH = Metric("catchment_controller_job_epoch", "How often the job's generations were replaced, from 1.", ("job",),
               False, "short", "Epochs of jobs", "{{job}}")  # fmt: skip
MEMBERS = Metric("catchment_controller_members", "Members of a job by what is known of them.", ("job", "state"), False,
                 "short", "Members of jobs", "{{job}} {{state}}")  # fmt: skip
FILE_BEHIND = Metric("catchment_controller_job_file_behind", "1 while the job file cannot be written.", (), False,
                     "bool_on_off", "Job file behind", "job file")  # fmt: skip

METRICS = (
    UP, JOB_FRAMES, JOB_BYTES, DROPS, ACK_LAG, CREDIT_LAG, PORT_UP, PORT_FRAMES, PORT_BYTES, PORT_DROPS, PORT_CONSUMED,
    POLL_AGE, POLL_SECONDS,
)  # fmt: skip
"""What `catchment stats --prometheus` has."""
CONTROLLER_METRICS = (SWITCH_KEPT, RESTORES, RESTORE_SECONDS, COMPARISONS, REPAIRS, EPOCH, MEMBERS, FILE_BEHIND)
"""What `catchment controller run --prometheus` has."""
