"""Who decides: runs a job epoch by epoch, from its graph to its end."""
