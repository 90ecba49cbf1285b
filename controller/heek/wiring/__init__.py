"""The pin map, the only place where a pin is written, and the documents made from it."""
