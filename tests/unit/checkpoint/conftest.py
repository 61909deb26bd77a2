"""Lets the tests of this folder import its own modules, and the all-round job from the project's root."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).resolve().parents[3])]
