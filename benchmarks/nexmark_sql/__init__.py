"""Queries of the Nexmark benchmark in SQL over a file of events: the same statements on Penstock and on PyFlink."""
