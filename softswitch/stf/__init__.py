"""p4c's packet test language (STF), run in-process: `python -m softswitch.stf PROGRAM.p4 TEST.stf`."""

from softswitch.stf.language import StfError, parse
from softswitch.stf.runner import Report, run

__all__ = ["Report", "StfError", "parse", "run"]
