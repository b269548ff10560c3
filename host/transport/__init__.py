"""The transport of a host: endpoints (push, pull) and all-reduce streams over one I/O thread (docs/endpoint.md)."""
