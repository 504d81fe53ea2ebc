"""Which road the answers take: the long one, as in the tests of runs."""

from tests.run.conftest import long_road

__all__ = ["long_road"]
