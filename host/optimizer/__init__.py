"""The optimizer node of LuWu: master weights and Adam in memory, layers streamed down, summed gradients streamed up."""

from host.optimizer.adam import Adam, LayerState
from host.optimizer.node import NodeOptions, OptimizerNode, PassRecord
from host.optimizer.scaling import DelayedScaling, ScalingOptions

__all__ = [
    "Adam",
    "DelayedScaling",
    "LayerState",
    "NodeOptions",
    "OptimizerNode",
    "PassRecord",
    "ScalingOptions",
]
