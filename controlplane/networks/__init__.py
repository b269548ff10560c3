"""Networks that are up on this machine: their state, requests to their owner, and the ports of their switches."""
