"""What `heek doctor` knows: looks at everything that a table hangs on, and says what to do."""
