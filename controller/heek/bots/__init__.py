"""Players that choose among legal actions: what the table throws at the seats it has taken itself."""
