"""The kinds of attack by name; `catchment.sim.lab.traffic.kinds` makes their frames.

This module does without Scapy, which takes a second to import.
"""

from enum import StrEnum


class AttackKind(StrEnum):
    """What an attacker does."""

    SPOOFED = "spoofed"
    GENERATION = "generation"
    STOLEN = "stolen"
    FLOOD = "flood"
    ARP = "arp"
    MALFORMED = "malformed"
