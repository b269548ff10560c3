"""A slow, obvious interpreter of the compiler's IR: what a program does, without generated code.

It is what the compiled switch is tested against, and a way to watch a program at work (`python -m
softswitch.interpreter PROGRAM.p4 PACKET --trace`). It shares the front end with the compiler and nothing else.
"""

from catchment.softswitch.interpreter.errors import InterpreterError
from catchment.softswitch.interpreter.switch import InterpretedSwitch

__all__ = ["InterpretedSwitch", "InterpreterError"]
