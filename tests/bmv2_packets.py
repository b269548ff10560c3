"""BMv2's own gRPC packet stream: frames in and out of simple_switch_grpc without interfaces or privileges."""

from __future__ import annotations

import queue
import threading
from typing import Any

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory


def _packet_types() -> tuple[Any, Any]:
    """Message classes of p4.bm.DataplaneInterface.PacketStream."""
    file = descriptor_pb2.FileDescriptorProto(name="bm_packets.proto", package="p4.bm", syntax="proto3")
    kinds = descriptor_pb2.FieldDescriptorProto
    for name in ("PacketStreamRequest", "PacketStreamResponse"):
        message = file.message_type.add(name=name)
        fields = [("id", kinds.TYPE_UINT64), ("device_id", kinds.TYPE_UINT64)]
        fields += [("port", kinds.TYPE_UINT32), ("packet", kinds.TYPE_BYTES)]
        for number, (field, kind) in enumerate(fields, start=1):
            message.field.add(name=field, number=number, type=kind, label=kinds.LABEL_OPTIONAL)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    request, response = (
        message_factory.GetMessageClass(pool.FindMessageTypeByName(f"p4.bm.PacketStream{way}"))
        for way in ("Request", "Response")
    )
    return request, response


class PacketStream:
    """The ports of one running switch, reached over its data-plane gRPC channel."""

    def __init__(self, channel: grpc.Channel, device: int) -> None:
        self._device = device
        self._outbox: queue.Queue[Any] = queue.Queue()
        self._inbox: queue.Queue[tuple[int, bytes]] = queue.Queue()
        self._request, response = _packet_types()
        call = channel.stream_stream(
            "/p4.bm.DataplaneInterface/PacketStream",
            request_serializer=self._request.SerializeToString,
            response_deserializer=response.FromString,
        )
        packets = call(iter(self._outbox.get, None))

        def receive() -> None:
            try:
                for packet in packets:
                    self._inbox.put((packet.port, packet.packet))
            except grpc.RpcError:
                return  # the switch ended

        threading.Thread(target=receive, daemon=True).start()

    def send(self, port: int, frame: bytes) -> None:
        """A frame comes in."""
        self._outbox.put(self._request(device_id=self._device, port=port, packet=frame))

    def receive(self, timeout: float) -> tuple[int, bytes]:
        """(port, frame) that left. queue.Empty after `timeout` seconds without one."""
        return self._inbox.get(timeout=timeout)

    def close(self) -> None:
        """No more frames come in."""
        self._outbox.put(None)
