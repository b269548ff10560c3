"""Why a job does not move: counters in words, the members that it waits for, and captures."""
