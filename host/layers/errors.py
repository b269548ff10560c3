"""The one exception of model-in-network training (catchment.host.layers, host.torch, host.optimizer)."""


class TrainingError(Exception):
    """A layer, a message or the order of the passes is not what both ends agreed on; says which and what to do."""
