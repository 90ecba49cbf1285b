"""A round's photo finish: who pressed when, what counted and what not and why, and by how much."""
