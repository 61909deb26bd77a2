"""The job as a graph: transformations, stream graph, job graph, execution graph, and the plan that people read."""
