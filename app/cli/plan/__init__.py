"""``conclave plan``: the command, its tables, the meaning of each row, and the plot."""
