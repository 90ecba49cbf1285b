"""Measures the table: latency, speed, start, memory, idle load; `python -m tests.bench`."""
