"""The controller: switches watched and restored, jobs, members and their losses (docs/control-plane.md)."""
