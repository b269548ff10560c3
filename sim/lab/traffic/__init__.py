"""Scapy traffic: members of a job without an endpoint, a straggler, and an attacker (docs/howto/mininet.md)."""
