"""Files wherever they are: the one place where a path or a URI becomes a store that can be read and written."""
