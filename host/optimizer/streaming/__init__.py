"""The out-of-core node: layers stream from the store through an arena to the network and back."""

from host.optimizer.streaming.arena import Arena
from host.optimizer.streaming.clipping import Clip, Clipping
from host.optimizer.streaming.node import StreamingNode, StreamingOptions

__all__ = ["Arena", "Clip", "Clipping", "StreamingNode", "StreamingOptions"]
