"""``python -m placer``, the same as ``placer``."""

from __future__ import annotations

import sys

from placer.cli import main

sys.exit(main())
