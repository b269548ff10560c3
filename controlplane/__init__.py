"""Jobs, topology, table entries, counters, diagnosis and the command line; see docs/control-plane.md."""
