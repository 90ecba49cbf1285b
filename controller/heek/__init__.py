"""The controller of an Ahyoheek table."""

__version__ = "0.1.0"
