"""Networks on this machine: Mininet, shared memory, a local switch, crews of processes, Scapy players."""
