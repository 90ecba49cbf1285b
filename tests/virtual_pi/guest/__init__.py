"""What runs inside the virtual Pi."""
