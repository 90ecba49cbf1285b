"""Two hosts with a cable between them: a table's and a KI's, each a network namespace of this machine."""
