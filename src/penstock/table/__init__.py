"""The ground for PyFlink's Table API and SQL: types, expressions, functions. There is no API to use them yet."""
