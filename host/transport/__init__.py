"""The transport of a host: endpoints (push, pull), all-reduce streams, an I/O thread (docs/explanation/endpoint.md)."""
