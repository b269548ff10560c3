"""The metrics: their names, labels and meanings. Endpoint, dashboard and documentation follow this list."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto


class MetricKind(Enum):
    """What a metric's values mean."""

    GAUGE = auto()
    COUNTER = auto()
    """It only grows."""
    HISTOGRAM = auto()
    """How many events there were, by length."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric.

    Attributes:
        name: without the `_total` that counters get on the wire.
        help: one sentence.
        labels: in order.
        kind: what its values mean.
        unit: Grafana's name of the unit, of a counter per second.
        panel: title of its panel on the dashboard.
        legend: its lines' labels there, in Grafana's notation.
    """

    name: str
    help: str
    labels: tuple[str, ...]
    kind: MetricKind
    unit: str
    panel: str
    legend: str

    @property
    def wire_name(self) -> str:
        """The name that a query uses; of a histogram, that of its cells."""
        return self.name + _ON_THE_WIRE[self.kind]


GAUGE, COUNTER, HISTOGRAM = MetricKind.GAUGE, MetricKind.COUNTER, MetricKind.HISTOGRAM
_ON_THE_WIRE = {GAUGE: "", COUNTER: "_total", HISTOGRAM: "_bucket"}
_JOB = ("switch", "job", "stream", "gen", "member", "port")
_PORT = ("switch", "port", "peer")
_FLOW = "{{job}} {{stream}} from {{member}}"
_WHERE = "{{switch}} port {{port}} ({{peer}}) {{direction}}"

_SWITCH = ("switch",)

UP = Metric(
    "catchment_switch_up", "1 when the switch answers.", ("switch",), GAUGE, "bool_on_off", "Switches", "{{switch}}"
)
JOB_FRAMES = Metric("catchment_job_frames", "Frames of a job's stream that arrived at a port.", _JOB, COUNTER, "pps",
                    "Frames of jobs by member", _FLOW)  # fmt: skip
JOB_BYTES = Metric("catchment_job_bytes", "Bytes of a job's stream that arrived at a port.", _JOB, COUNTER, "Bps",
                   "Bytes of jobs by member", _FLOW)  # fmt: skip
DROPS = Metric("catchment_drops", "Frames that the program dropped, by reason.", ("switch", "reason"), COUNTER, "pps",
               "Drops by reason", "{{switch}} {{reason}}")  # fmt: skip
ACK_LAG = Metric("catchment_ack_lag_frames", "Frames that a member expects less than the furthest of its stream.",
                 ("switch", "job", "stream", "member"), GAUGE, "short", "Acknowledgements behind the furthest member",
                 "{{job}} {{stream}} {{member}}")  # fmt: skip
CREDIT_LAG = Metric("catchment_credit_lag_frames", "Frames that a member takes less than the furthest of its stream.",
                    ("switch", "job", "stream", "member"), GAUGE, "short", "Credit behind the furthest member",
                    "{{job}} {{stream}} {{member}}")  # fmt: skip
PORT_UP = Metric("catchment_port_up", "1 when the port's link is up.", _PORT, GAUGE, "bool_on_off", "Ports",
                 "{{switch}} port {{port}} ({{peer}})")  # fmt: skip
PORT_FRAMES = Metric("catchment_port_frames", "Frames in and out of a port.", (*_PORT, "direction"), COUNTER, "pps",
                     "Frames by port", _WHERE)  # fmt: skip
PORT_BYTES = Metric("catchment_port_bytes", "Bytes in and out of a port.", (*_PORT, "direction"), COUNTER, "Bps",
                    "Bytes by port", _WHERE)  # fmt: skip
PORT_DROPS = Metric("catchment_port_drops", "Frames of a port that the switch itself dropped, by cause.",
                    (*_PORT, "cause"), COUNTER, "pps", "Drops by port and cause",
                    "{{switch}} port {{port}} ({{peer}}) {{cause}}")  # fmt: skip
PORT_CONSUMED = Metric("catchment_port_consumed_frames", "Frames of a port that the program sent nowhere: vectors that "
                       "it added up, and what catchment_drops_total has.", _PORT, COUNTER, "pps",
                       "Frames taken in by port", "{{switch}} port {{port}} ({{peer}})")  # fmt: skip
_RAIL_LABELS = ("switch", "job", "rail")
_RAIL = "{{job}} rail {{rail}}"
RAIL_UP = Metric("catchment_rail_up", "1 when the ranks of a job use a rail; 0 while it is broken or on probation.",
                 _RAIL_LABELS, GAUGE, "bool_on_off", "Rails of jobs", _RAIL)  # fmt: skip
RAIL_BYTES = Metric("catchment_rail_bytes", "Bytes that one rank has sent over a rail.", _RAIL_LABELS, COUNTER, "Bps",
                    "Bytes of a rank by rail", _RAIL)  # fmt: skip
RAIL_RATE = Metric("catchment_rail_rate_bits", "Bits per second of a rail, as all ranks have measured it.",
                   _RAIL_LABELS, GAUGE, "bps", "Measured rates of rails", _RAIL)  # fmt: skip
RAIL_START = Metric("catchment_rail_start_seconds", "Seconds before the first byte of an operation, likewise.",
                    _RAIL_LABELS, GAUGE, "s", "Measured start-up of rails", _RAIL)  # fmt: skip
RAIL_INCIDENTS = Metric("catchment_rail_incidents", "How often the ranks have found a rail broken.", _RAIL_LABELS,
                        COUNTER, "short", "Incidents of rails", _RAIL)  # fmt: skip
RAIL_LAST = Metric("catchment_rail_last_incident_seconds", "Seconds from a broken rail's last sum until all ranks "
                   "knew, the last time.", _RAIL_LABELS, GAUGE, "s", "Last incidents of rails", _RAIL)  # fmt: skip
POLL_AGE = Metric("catchment_switch_poll_age_seconds", "Seconds since the exporter has looked at the switch.",
                  ("switch",), GAUGE, "s", "Age of what is shown", "{{switch}}")  # fmt: skip
POLL_SECONDS = Metric("catchment_switch_poll_seconds", "Seconds that the exporter's latest look at the switch took.",
                      ("switch",), GAUGE, "s", "Length of a look at a switch", "{{switch}}")  # fmt: skip

FAILED_HANDSHAKES = Metric("catchment_switch_failed_handshakes", "TLS handshakes with a switch that failed.", _SWITCH,
                           COUNTER, "short", "Failed TLS handshakes", "{{switch}}")  # fmt: skip
CUT_OFF = Metric("catchment_switch_clients_cut_off", "P4Runtime clients cut off for messages that are far too long.",
                 _SWITCH, COUNTER, "short", "Clients cut off", "{{switch}}")  # fmt: skip

SWITCH_KEPT = Metric("catchment_controller_switch_up", "1 when the controller keeps the switch right.", _SWITCH,
                     GAUGE, "bool_on_off", "Switches under the controller", "{{switch}}")  # fmt: skip
RESTORES = Metric("catchment_controller_restores", "How often the controller loaded a switch's program and entries.",
                  _SWITCH, COUNTER, "short", "Restores of switches", "{{switch}}")  # fmt: skip
RESTORE_SECONDS = Metric("catchment_controller_restore_seconds", "Seconds that the latest restore took.", _SWITCH,
                         GAUGE, "s", "Length of a restore", "{{switch}}")  # fmt: skip
COMPARISONS = Metric("catchment_controller_comparisons", "How often a switch was compared with what it should hold.",
                     _SWITCH, COUNTER, "short", "Comparisons of switches", "{{switch}}")  # fmt: skip
REPAIRS = Metric("catchment_controller_repairs", "How often a connected switch held what it should not.", _SWITCH,
                 COUNTER, "short", "Drift put right", "{{switch}}")  # fmt: skip
RESTORE_TIMES = Metric("catchment_controller_restore_times_seconds", "Seconds that restores of a switch took.", _SWITCH,
                       HISTOGRAM, "s", "Restores of switches by length (p99)", "{{switch}}")  # fmt: skip
COMPARE_TIMES = Metric("catchment_controller_compare_times_seconds", "Seconds that comparisons of a switch took.",
                       _SWITCH, HISTOGRAM, "s", "Comparisons of switches by length (p99)", "{{switch}}")  # fmt: skip
EPOCH_TIMES = Metric("catchment_controller_epoch_seconds", "Seconds that a job's generations lasted until they were "
                     "replaced.", ("job",), HISTOGRAM, "s", "Length of epochs (p99)", "{{job}}")  # fmt: skip
EPOCH = Metric("catchment_controller_job_epoch", "How often the job's generations were replaced, from 1.", ("job",),
               GAUGE, "short", "Epochs of jobs", "{{job}}")  # fmt: skip
MEMBERS = Metric("catchment_controller_members", "Members of a job by what is known of them.", ("job", "state"), GAUGE,
                 "short", "Members of jobs", "{{job}} {{state}}")  # fmt: skip
FILE_BEHIND = Metric("catchment_controller_job_file_behind", "1 while the job file cannot be written.", (), GAUGE,
                     "bool_on_off", "Job file behind", "job file")  # fmt: skip
REFUSED_CONNECTIONS = Metric("catchment_controller_refused_connections", "TCP connections with a controller that "
                             "ended without a request: `handshake`, `silent`, `full` or `left`.", ("how",), COUNTER,
                             "short", "Connections without a request", "{{how}}")  # fmt: skip

_ENDPOINT = ("job", "host")
_MEMBER = "{{job}} {{host}}"
ROUND_TRIP = Metric("catchment_endpoint_round_trip_seconds", "Seconds from a frame to its acknowledgement, smoothed.",
                    _ENDPOINT, GAUGE, "s", "Round trips of endpoints", _MEMBER)  # fmt: skip
ROUND_TRIP_TIMES = Metric("catchment_endpoint_frame_seconds", "Seconds from a frame to its acknowledgement.", _ENDPOINT,
                          HISTOGRAM, "s", "Round trips of endpoints (p99)", _MEMBER)  # fmt: skip
PUSHES = Metric("catchment_endpoint_pushes", "Messages that an endpoint pushed and that every receiver has.", _ENDPOINT,
                COUNTER, "short", "Messages pushed", _MEMBER)  # fmt: skip
PUSH_SECONDS = Metric("catchment_endpoint_push_seconds", "Seconds from a push until every receiver had it, of all "
                      "pushes together.", _ENDPOINT, COUNTER, "short", "Pushes under way", _MEMBER)  # fmt: skip
RETRANSMISSIONS = Metric("catchment_endpoint_retransmissions", "Frames that an endpoint sent again.", _ENDPOINT,
                         COUNTER, "pps", "Frames sent again", _MEMBER)  # fmt: skip
TIMEOUTS = Metric("catchment_endpoint_timeouts", "How often an endpoint waited in vain and began to send again.",
                  _ENDPOINT, COUNTER, "short", "Timeouts of endpoints", _MEMBER)  # fmt: skip
SENT = Metric("catchment_endpoint_frames_sent", "Frames that an endpoint sent.", _ENDPOINT, COUNTER, "pps",
              "Frames sent by endpoints", _MEMBER)  # fmt: skip
RECEIVED = Metric("catchment_endpoint_frames_received", "Frames that an endpoint received.", _ENDPOINT, COUNTER, "pps",
                  "Frames received by endpoints", _MEMBER)  # fmt: skip
REJECTS = Metric("catchment_endpoint_rejects", "Frames that an endpoint did not take, by reason.",
                 (*_ENDPOINT, "reason"), COUNTER, "pps", "Frames rejected by endpoints",
                 "{{job}} {{host}} {{reason}}")  # fmt: skip
EPOCHS = Metric("catchment_endpoint_epoch", "The epoch of its job that an endpoint works in.", _ENDPOINT, GAUGE,
                "short", "Epochs of endpoints", _MEMBER)  # fmt: skip

METRICS = (
    UP, JOB_FRAMES, JOB_BYTES, DROPS, ACK_LAG, CREDIT_LAG, PORT_UP, PORT_FRAMES, PORT_BYTES, PORT_DROPS, PORT_CONSUMED,
    POLL_AGE, POLL_SECONDS, FAILED_HANDSHAKES, CUT_OFF,
)  # fmt: skip
"""What `catchment stats --prometheus` has."""
CONTROLLER_METRICS = (
    SWITCH_KEPT, RESTORES, RESTORE_SECONDS, COMPARISONS, REPAIRS, RESTORE_TIMES, COMPARE_TIMES, EPOCH_TIMES, EPOCH,
    MEMBERS, FILE_BEHIND, REFUSED_CONNECTIONS,
)  # fmt: skip
"""What `catchment controller run --prometheus` has."""
RAIL_METRICS = (RAIL_UP, RAIL_BYTES, RAIL_RATE, RAIL_START, RAIL_INCIDENTS, RAIL_LAST)
"""What `catchment stats --prometheus` has besides, where a rank of a job on several rails runs on its machine."""
ENDPOINT_METRICS = (
    ROUND_TRIP, ROUND_TRIP_TIMES, PUSHES, PUSH_SECONDS, RETRANSMISSIONS, TIMEOUTS, SENT, RECEIVED, REJECTS, EPOCHS,
)  # fmt: skip
"""What a program with endpoints has (`catchment.controlplane.metrics.endpoints`)."""
