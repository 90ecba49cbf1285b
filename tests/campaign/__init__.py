"""The campaign: random worlds of tables and one KI in which all that can fail does, and nothing is lost."""
