"""A word count from files to files, as real jobs are: read, take the time from the record, split, count, write."""
