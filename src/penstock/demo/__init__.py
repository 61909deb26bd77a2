"""A first look at Penstock: `python -m penstock.demo` counts the words of an endless text for some seconds."""
