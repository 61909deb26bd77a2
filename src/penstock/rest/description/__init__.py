"""The REST API described for tools, as OpenAPI."""
