"""The C library, loaded once: catchment_collectives.h as ctypes."""

from __future__ import annotations

import ctypes
from functools import cache

from catchment.host import build_path
from catchment.host.collectives.errors import CollectiveError
from catchment.wire.generated.constants import MAX_WORKERS

_ABI = 17
_LIBRARY = build_path.directory() / "libcatchment_collectives.so"


class Config(ctypes.Structure):
    """catchment_group_config."""

    _fields_ = (
        ("gen", ctypes.c_uint32),
        ("ranks", ctypes.c_uint32),
        ("rank", ctypes.c_uint32),
        ("slots", ctypes.c_uint32),
        ("window", ctypes.c_uint32),
        ("base_seq", ctypes.c_uint32),
        ("lanes", ctypes.c_uint32),
        ("local_port", ctypes.c_uint16),
        ("switch_port", ctypes.c_uint16),
        ("local_ip", ctypes.c_char_p),
        ("switch_ip", ctypes.c_char_p),
        ("shm_path", ctypes.c_char_p),
        ("attach_ns", ctypes.c_int64),
        ("timeout_ns", ctypes.c_int64),
        ("spin_ns", ctypes.c_int64),
        ("absent_ns", ctypes.c_int64),
        ("switch_name", ctypes.c_char_p),
        ("way", ctypes.c_int32),
        ("packed", ctypes.c_int32),
        ("key", ctypes.c_char_p),
        ("key_frames", ctypes.c_uint64),
        ("place", ctypes.c_uint32),
        ("term_bits", ctypes.c_uint32),
    )


class RailWords(ctypes.Structure):
    """catchment_rail."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("config", Config),
        ("bytes_per_ms", ctypes.c_uint32),
        ("control", ctypes.POINTER(Config)),
        ("spares", ctypes.POINTER(Config)),
    )


class RailCostWords(ctypes.Structure):
    """catchment_rail_cost."""

    _fields_ = (
        ("start_ns", ctypes.c_uint32),
        ("bytes_per_ms", ctypes.c_uint32),
        ("nominal", ctypes.c_uint32),
        ("beside_start_ns", ctypes.c_uint32),
        ("beside_bytes_per_ms", ctypes.c_uint32),
    )


class RailShareWords(ctypes.Structure):
    """catchment_rail_share."""

    _fields_ = (("rail", ctypes.c_uint32), ("first", ctypes.c_uint64), ("elements", ctypes.c_uint64))


class RailStateWords(ctypes.Structure):
    """catchment_rail_state."""

    _fields_ = (
        ("cost", RailCostWords),
        ("parts", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
        ("health", ctypes.c_uint32),
        ("carrier", ctypes.c_uint32),
        ("incidents", ctypes.c_uint64),
        ("last_incident_ns", ctypes.c_int64),
        ("joined", ctypes.c_uint32),
    )


RUNS, SUCCEEDED, FAILED = range(3)
"""catchment_progress."""


class Result(ctypes.Structure):
    """catchment_result."""

    _fields_ = (
        ("done", ctypes.c_int32),
        ("failed", ctypes.c_int32),
        ("fatal", ctypes.c_int32),
        ("exponent", ctypes.c_int32),
        ("peers", ctypes.c_uint64),
        ("has_seq", ctypes.c_int32),
        ("seq", ctypes.c_uint32),
        ("any_saturated", ctypes.c_int32),
        ("vectors", ctypes.c_uint64),
        ("retransmissions", ctypes.c_uint64),
        ("saturated", ctypes.c_uint64),
        ("nonfinite", ctypes.c_uint64),
        ("latency_ns", ctypes.c_int64),
        ("kind", ctypes.c_char_p),
        ("message", ctypes.c_char_p),
        ("hint", ctypes.c_char_p),
    )

    def error(self, operation: str) -> CollectiveError | None:
        """What failed, as what a caller raises."""
        if not self.failed:
            return None
        return CollectiveError(
            self.message.decode(),
            kind=self.kind.decode(),
            operation=operation,
            peers=tuple(rank for rank in range(MAX_WORKERS) if self.peers >> rank & 1),
            seq=self.seq if self.has_seq else None,
            hint=self.hint.decode(),
            fatal=bool(self.fatal),
        )


class Stats(ctypes.Structure):
    """catchment_group_stats."""

    _fields_ = tuple(
        (name, ctypes.c_uint64)
        for name in (
            "frames_sent",
            "frames_received",
            "bytes_sent",
            "bytes_received",
            "retransmissions",
            "timeouts",
            "heartbeats_sent",
            "heartbeats_received",
            "frames_asked_for",
            "saturated",
            "nonfinite",
            "socket_errors",
            "rejected",
            "in_flight",
            "held",
            "operations",
            "round_trip_ns",
            "retransmit_timeout_ns",
            "exponents_guessed",
            "exponents_missed",
            "forged",
            "in_callers",
        )
    )


@cache
def library() -> ctypes.CDLL:
    """The loaded library.

    Raises:
        CollectiveError: kind ``system``: it is not built, or built from another version of the header.
    """
    try:
        loaded = ctypes.CDLL(str(_LIBRARY))
    except OSError as error:
        raise CollectiveError(f"cannot load {_LIBRARY}: {error}", kind="system", hint="run `make native`") from error
    handle, nanos = ctypes.c_void_p, ctypes.c_int64
    signatures = {
        "collectives_abi": ([], ctypes.c_int),
        "group_open": ([ctypes.POINTER(Config), ctypes.c_char_p, ctypes.c_size_t], handle),
        "rails_open": (
            [ctypes.POINTER(RailWords), ctypes.c_uint32, ctypes.c_int32, ctypes.c_char_p, ctypes.c_size_t],
            handle,
        ),
        "rails_states": ([handle, ctypes.POINTER(RailStateWords), ctypes.c_uint32], ctypes.c_uint32),
        "rails_shares": ([handle, ctypes.c_uint64, ctypes.POINTER(RailShareWords), ctypes.c_uint64], ctypes.c_uint64),
        "rails_costs": ([handle, ctypes.c_uint64, ctypes.POINTER(RailCostWords), ctypes.c_uint32], None),
        "rails_split": (
            [
                ctypes.POINTER(RailCostWords),
                ctypes.POINTER(ctypes.c_uint32),
                ctypes.c_uint32,
                ctypes.c_int32,
                ctypes.c_uint64,
                ctypes.POINTER(RailShareWords),
                ctypes.c_uint64,
            ],
            ctypes.c_uint64,
        ),
        "group_forked": ([handle], ctypes.c_int),
        "group_port": ([handle], ctypes.c_uint16),
        "group_key_due": ([handle], ctypes.c_uint64),
        "group_take_key": ([handle, ctypes.c_uint64, ctypes.c_char_p], ctypes.c_int),
        "group_failure": ([handle, ctypes.POINTER(Result)], None),
        "group_get_stats": ([handle, ctypes.POINTER(Stats)], None),
        "group_close": ([handle, nanos], None),
        "group_free": ([handle], None),
        "work_cancel": ([handle], ctypes.c_int),
        "work_result": ([handle, ctypes.POINTER(Result)], None),
    }
    for name, (arguments, result) in signatures.items():
        function = getattr(loaded, f"catchment_{name}")
        function.argtypes, function.restype = arguments, result
    if (found := loaded.catchment_collectives_abi()) != _ABI:
        raise CollectiveError(
            f"{_LIBRARY} has ABI {found}, this package needs {_ABI}", kind="system", hint="run `make native`"
        )
    return loaded
