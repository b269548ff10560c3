"""The optimizer node of LuWu: layers streamed down, summed gradients streamed up, model states in memory or on disk."""

from catchment.host.optimizer.groups import ParameterGroup
from catchment.host.optimizer.loss_scale import DynamicLossScale
from catchment.host.optimizer.node import OptimizerNode, PassRecord
from catchment.host.optimizer.options import NodeOptions
from catchment.host.optimizer.rules import Adam, Sgd, UpdateRule
from catchment.host.optimizer.scaling import DelayedScaling, ScalingOptions

__all__ = [
    "Adam",
    "DelayedScaling",
    "DynamicLossScale",
    "NodeOptions",
    "OptimizerNode",
    "ParameterGroup",
    "PassRecord",
    "ScalingOptions",
    "Sgd",
    "UpdateRule",
]
