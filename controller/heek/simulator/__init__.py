"""The table on honest fakes under virtual time, and the stories that drive it."""
