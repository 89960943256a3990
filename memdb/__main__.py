"""`python -m memdb` is the `memdb` command."""

from __future__ import annotations

import sys

from memdb.cli import main

sys.exit(main())
