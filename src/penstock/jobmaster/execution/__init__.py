"""Who runs the stages of an epoch: slots, workers, and the seam to Spark."""
