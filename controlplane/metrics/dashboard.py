"""The Grafana dashboard, made from the list of metrics: a panel each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from catchment.controlplane.metrics.definitions import (
    CONTROLLER_METRICS,
    ENDPOINT_METRICS,
    METRICS,
    RAIL_METRICS,
    Metric,
    MetricKind,
)

FILE = Path(__file__).with_name("grafana.json")
"""The dashboard as it is in the repository, for Grafana's import."""

_SOURCE = {"type": "prometheus", "uid": "${source}"}
_ALL = (*METRICS, *RAIL_METRICS, *CONTROLLER_METRICS, *ENDPOINT_METRICS)
_WIDTH, _HEIGHT = 12, 8


def dashboard() -> dict[str, Any]:
    """The dashboard, in Grafana's JSON model."""
    return {
        "title": "Catchment",
        "uid": "catchment",
        "tags": ["catchment"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "refresh": "5s",
        "time": {"from": "now-15m", "to": "now"},
        "templating": {
            "list": [
                {"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"},
                {
                    "name": "switch",
                    "label": "Switch",
                    "type": "query",
                    "datasource": _SOURCE,
                    "query": f"label_values({METRICS[0].wire_name}, switch)",
                    "refresh": 2,
                    "multi": True,
                    "includeAll": True,
                    "current": {"text": "All", "value": "$__all"},
                },
            ]
        },
        "panels": [_panel(number, metric) for number, metric in enumerate(_ALL)],
    }


def text() -> str:
    """The dashboard as the file has it."""
    return json.dumps(dashboard(), indent=2) + "\n"


def query(metric: Metric) -> str:
    """What a panel asks Prometheus: counters as rates, of histograms what 99 of 100 events do not exceed."""
    selected = metric.wire_name + ('{switch=~"$switch"}' if "switch" in metric.labels else "")
    rate = f"rate({selected}[$__rate_interval])"
    if metric.kind is MetricKind.HISTOGRAM:
        return f"histogram_quantile(0.99, sum by (le, {', '.join(metric.labels)}) ({rate}))"
    return rate if metric.kind is MetricKind.COUNTER else selected


def _panel(number: int, metric: Metric) -> dict[str, Any]:
    return {
        "id": number + 1,
        "title": metric.panel,
        "description": metric.help,
        "type": "timeseries",
        "datasource": _SOURCE,
        "gridPos": {"x": number % 2 * _WIDTH, "y": number // 2 * _HEIGHT, "w": _WIDTH, "h": _HEIGHT},
        "fieldConfig": {"defaults": {"unit": metric.unit, "min": 0}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
        "targets": [{"refId": "A", "datasource": _SOURCE, "expr": query(metric), "legendFormat": metric.legend}],
    }


if __name__ == "__main__":
    FILE.write_text(text(), "utf-8")
