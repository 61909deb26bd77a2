"""Who may use the REST API, and how much of it."""
