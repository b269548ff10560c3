"""The embedded P4 target: compiler, runtime and server of a general v1model switch."""
