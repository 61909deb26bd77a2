"""Queries of the Nexmark benchmark as DataStream programs, over an auction house that is made up by event number."""
