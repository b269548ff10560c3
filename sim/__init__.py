"""What puts the parts together: golden models, protocol proofs, networks on this machine, co-simulation, trainings."""
