"""Table tests for every kind of table: the simulator by `make test`, a simulated chip in the guest."""
