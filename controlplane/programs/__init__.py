"""Compiled switch programs: the compilers that targets need, a cache of what these made, and a program as files."""
