"""The optimizer node of LuWu: layers streamed down, summed gradients streamed up, model states in memory or on disk."""

from host.optimizer.loss_scale import DynamicLossScale
from host.optimizer.node import OptimizerNode, PassRecord
from host.optimizer.options import NodeOptions
from host.optimizer.rules import Adam, Sgd, UpdateRule
from host.optimizer.scaling import DelayedScaling, ScalingOptions

__all__ = [
    "Adam",
    "DelayedScaling",
    "DynamicLossScale",
    "NodeOptions",
    "OptimizerNode",
    "PassRecord",
    "ScalingOptions",
    "Sgd",
    "UpdateRule",
]
