"""The driver of the NICs: registers by name, requests, completion records (docs/nic.md)."""
