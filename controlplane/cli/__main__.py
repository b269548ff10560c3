"""`python -m controlplane.cli` is the `catchment` command."""

from controlplane.cli import main

main()
