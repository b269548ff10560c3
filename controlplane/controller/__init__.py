"""The controller: switches watched and restored, jobs, members and their losses (docs/explanation/control-plane.md)."""
