"""What a switch should hold, and what operators put there by hand; see docs/control-plane.md."""
