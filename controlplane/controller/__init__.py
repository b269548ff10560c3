"""The controller: switches watched and restored, jobs, members and their losses (docs/explanation/controller.md)."""
