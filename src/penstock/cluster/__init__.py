"""A job manager that runs the jobs of many clients: its process, its leadership, and how jobs get there."""
