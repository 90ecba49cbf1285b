"""What a game is, and the rules of each game the table plays."""
