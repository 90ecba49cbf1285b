"""How fair the table is: what is measured, and what that says."""
