"""The stations round the table: three buttons and an LED at each seat."""
