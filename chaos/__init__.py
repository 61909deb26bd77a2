"""Proof that jobs survive: an all-round job whose results are known, and a runner that kills its processes."""
