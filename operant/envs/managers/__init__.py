"""B environments as one: in this process, in worker processes, or as a vector environment."""
