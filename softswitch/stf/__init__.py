"""p4c's packet test language (STF), run in-process: `python -m softswitch.stf PROGRAM.p4 TEST.stf`."""

from softswitch.stf.language import StfError, parse
from softswitch.stf.runner import Report, run
from softswitch.stf.suite import Outcome, find_tests, run_test

__all__ = ["Outcome", "Report", "StfError", "find_tests", "parse", "run", "run_test"]
