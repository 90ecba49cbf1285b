"""What `heek selftest` does with a person at the table: walks buttons, LEDs and panel, and learns pins."""
