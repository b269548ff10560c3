"""Not a test: `udp_echo.py serve ADDRESS` answers datagrams; `udp_echo.py ask ADDRESS BYTES [PORT]` wants one back."""

import socket
import sys

_PORT = 7007
_MTU_DISCOVER, _DO = 10, 2  # linux/in.h: IP_MTU_DISCOVER, IP_PMTUDISC_DO


def main() -> None:
    role, address = sys.argv[1:3]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as endpoint:
        if role == "serve":
            endpoint.bind((address, _PORT))
            print("ready", flush=True)
            while True:
                data, peer = endpoint.recvfrom(65535)
                endpoint.sendto(data, peer)
        endpoint.setsockopt(socket.IPPROTO_IP, _MTU_DISCOVER, _DO)
        endpoint.bind(("", int(sys.argv[4]) if len(sys.argv) > 4 else 0))
        endpoint.settimeout(1.0)
        payload = bytes(i % 251 for i in range(int(sys.argv[3])))
        for _ in range(60):
            endpoint.sendto(payload, (address, _PORT))
            try:
                answer = endpoint.recvfrom(65535)[0]
            except TimeoutError:
                continue
            sys.exit(0 if answer == payload else "another answer than was sent")
        sys.exit(f"no answer from {address}")


if __name__ == "__main__":
    main()
