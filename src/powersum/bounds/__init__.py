"""Upper bounds: the protocol all methods follow, the registry of their names, the loop that drives them."""
