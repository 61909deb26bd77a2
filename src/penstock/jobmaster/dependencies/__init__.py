"""The files, packages and modules that a job needs beside its graph."""
