"""Running programs written for PyFlink as they are."""
