"""The kinds of attack by name; `catchment.sim.lab.traffic.kinds` makes their frames.

This module does without Scapy, which takes a second to import.
"""

from enum import StrEnum


class AttackKind(StrEnum):
    """What an attacker does.

    Attributes:
        SPOOFED: a good vector with a worker's addresses, from a port that is not in the job.
        GENERATION: a vector of a generation that the job once had, or may get.
        STOLEN: a good vector with the job's generation and the sender's own addresses.
        FLOOD: noise.
        ARP: ARP messages that say the switch's address is the sender's.
        MALFORMED: frames that are wrong in themselves.
        SWITCH: sums, parameters and heartbeats straight to a member, in the switch's name.
        LOCAL: good frames of the job from another program on a member's host, through an ordinary UDP socket.
        KEYLESS: good frames in a member's own name from its host, by who has root's rights there but not the job's key.
    """

    SPOOFED = "spoofed"
    GENERATION = "generation"
    STOLEN = "stolen"
    FLOOD = "flood"
    ARP = "arp"
    MALFORMED = "malformed"
    SWITCH = "switch"
    LOCAL = "local"
    KEYLESS = "keyless"
