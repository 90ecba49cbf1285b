"""The pure session: stamped inputs and `now` in, events and a frozen view out."""
