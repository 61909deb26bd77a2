"""What several connectors have in common."""
