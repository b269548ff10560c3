"""Not a test: a switch process that repeats every frame to every other port, and says that it listens at a socket.

usage: hub_switch.py unix:PATH INTERFACE...
"""

import selectors
import socket
import sys

_ETH_P_ALL = 3
_OUTGOING = 4


def main() -> None:
    server = socket.create_server(sys.argv[1].removeprefix("unix:"), family=socket.AF_UNIX)
    selector = selectors.DefaultSelector()
    ports = []
    for name in sys.argv[2:]:
        endpoint = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        endpoint.bind((name, _ETH_P_ALL))
        selector.register(endpoint, selectors.EVENT_READ)
        ports.append(endpoint)
    selector.register(server, selectors.EVENT_READ)
    print(f"Server listening on {sys.argv[1]}", flush=True)
    while True:
        for key, _ in selector.select():
            if key.fileobj is server:
                server.accept()[0].close()
                continue
            frame, address = key.fileobj.recvfrom(65535)
            if address[2] == _OUTGOING:
                continue
            for out in ports:
                if out is not key.fileobj:
                    out.send(frame)


if __name__ == "__main__":
    main()
