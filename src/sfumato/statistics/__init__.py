"""What is summed: one file per statistic, each a `BoundedSum` with its bounds proved in its docstring."""
