"""What a switch should hold, and what operators put there by hand; see docs/explanation/control-plane.md."""
