"""Pure functions on text: no clock, no I/O, no storage."""
