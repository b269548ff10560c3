"""One module per output language; each has `emit(frame) -> text`."""
