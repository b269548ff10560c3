"""The out-of-core node: layers stream from the store through an arena to the network and back."""

from catchment.host.optimizer.streaming.arena import Arena
from catchment.host.optimizer.streaming.clipping import Clip, Clipping
from catchment.host.optimizer.streaming.node import StreamingNode, StreamingOptions

__all__ = ["Arena", "Clip", "Clipping", "StreamingNode", "StreamingOptions"]
