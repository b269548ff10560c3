"""The driver of the NICs: registers by name, requests, completion records (docs/explanation/nic.md)."""
