"""Branch and bound with soft arc consistency: everything maximised, in whole numbers; for large domains."""

from powersum.search.costs.hybrid import CostSearch
from powersum.search.costs.tables import Costs

__all__ = ["CostSearch", "Costs"]
