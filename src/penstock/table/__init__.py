"""PyFlink's Table API and SQL."""
