"""The paths of the REST API, and what their requests do."""
