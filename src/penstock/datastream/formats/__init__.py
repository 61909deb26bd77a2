"""Formats of files and messages."""

from __future__ import annotations
