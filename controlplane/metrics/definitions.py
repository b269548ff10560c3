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

METRICS = (
    UP, JOB_FRAMES, JOB_BYTES, DROPS, ACK_LAG, CREDIT_LAG, PORT_UP, PORT_FRAMES, PORT_BYTES, PORT_DROPS, PORT_CONSUMED,
    POLL_AGE, POLL_SECONDS,
)  # fmt: skip
