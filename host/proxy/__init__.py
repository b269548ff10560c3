"""Routing of tensors to parameter proxies and optimizer nodes (COARSE): decisions from measured links, nothing else."""

from catchment.host.proxy.dual import DualCosts, DualPlan, better, dual_plan
from catchment.host.proxy.errors import ProxyError
from catchment.host.proxy.links import LinkCurve
from catchment.host.proxy.partition import partition, partition_threshold
from catchment.host.proxy.routing import Routing, route

__all__ = [
    "DualCosts",
    "DualPlan",
    "LinkCurve",
    "ProxyError",
    "Routing",
    "better",
    "dual_plan",
    "partition",
    "partition_threshold",
    "route",
]
