"""Parameter proxies (COARSE): those that synchronize among themselves, and decisions from measured links for all."""

from catchment.host.proxy.client import Client
from catchment.host.proxy.dual import DualCosts, DualPlan, better, dual_plan
from catchment.host.proxy.errors import ProxyError
from catchment.host.proxy.group import ProxyGroup
from catchment.host.proxy.home_client import HomeClient
from catchment.host.proxy.links import LinkCurve
from catchment.host.proxy.partition import partition, partition_threshold
from catchment.host.proxy.proxy import Proxy
from catchment.host.proxy.routing import Routing, route
from catchment.host.proxy.sum_home import SumHome
from catchment.host.proxy.sums import SumClient
from catchment.host.proxy.tensors import TensorTable

__all__ = [
    "Client",
    "DualCosts",
    "DualPlan",
    "HomeClient",
    "LinkCurve",
    "Proxy",
    "ProxyError",
    "ProxyGroup",
    "Routing",
    "SumClient",
    "SumHome",
    "TensorTable",
    "better",
    "dual_plan",
    "partition",
    "partition_threshold",
    "route",
]
