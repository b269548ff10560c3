"""`python -m catchment.cli` is the `catchment` command."""

from catchment.cli import main

main()
