"""What puts the parts together: emulated networks, golden models, protocol proofs, the demo."""
