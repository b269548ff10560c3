"""Jobs, topology, table entries, counters, diagnosis and the command line; see docs/explanation/control-plane.md."""
