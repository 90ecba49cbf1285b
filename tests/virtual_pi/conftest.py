"""What runs inside the virtual Pi is collected there, and to count it, but not by `make test`."""

from __future__ import annotations

import os

GUEST = "HEEK_VIRTUAL_PI"
"""Set in the guest, and for counting its tests."""

collect_ignore = [] if os.environ.get(GUEST) else ["guest"]
