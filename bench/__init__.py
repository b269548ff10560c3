"""One command per figure: each measures a thing and its limit or its peer in the same run and prints the ratio."""
