"""From a model and a query to a prepared problem: simplification and elimination orders."""
