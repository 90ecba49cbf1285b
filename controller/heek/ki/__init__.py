"""What the table tells the KI: results of matches, and later the links that carry them."""
