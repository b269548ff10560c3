"""p4c's packet test language (STF), run in-process: `python -m catchment.softswitch.stf PROGRAM.p4 TEST.stf`."""

from catchment.softswitch.stf.language import StfError, parse
from catchment.softswitch.stf.runner import Report, run
from catchment.softswitch.stf.suite import Engine, Outcome, Setting, find_tests, run_test

__all__ = ["Engine", "Outcome", "Report", "Setting", "StfError", "find_tests", "parse", "run", "run_test"]
