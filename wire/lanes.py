"""P4 lane code: the vector's header and one control instance a lane, for each supported width."""

from __future__ import annotations

from wire.frame import Frame


def _lanes(count: int, frame: Frame) -> str:
    fields = "\n".join(f"    bit<{frame.lane_bits}> d{i};" for i in range(count))
    return f"header lanes_h {{\n{fields}\n}}\n"


def outputs(frame: Frame) -> dict[str, str]:
    """File name -> text: `lanes_N.p4` for every N in `frame.supported_lanes`."""
    return {f"lanes_{n}.p4": _lanes(n, frame) for n in frame.supported_lanes}
