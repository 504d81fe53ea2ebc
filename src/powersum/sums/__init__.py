"""Lower and upper bounds on sums that are too wide to eliminate."""
