from __future__ import annotations

import sys
from pathlib import Path

# The benchmarks are not part of the package: they are found from the project's root.
sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
