"""What the page's server and the KI's have in common: addresses, connections with bounds, safe headers."""
