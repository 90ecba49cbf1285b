"""`python -m heek` is the command `heek`."""

import sys

from heek.cli import main

if __name__ == "__main__":
    sys.exit(main())
