"""A table for the tests of people who build tables and mods: a pytest plugin over the simulator."""
