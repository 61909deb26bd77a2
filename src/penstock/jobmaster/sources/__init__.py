"""The driver's side of sources: what there is to read, who reads it, and how far it was read."""
