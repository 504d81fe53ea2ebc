"""What all tests have in common: examples are the same in every run, and none of them has a time."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# A machine that stands still for half a minute is no fault of an example, nor of what draws it.
settings.register_profile("others", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", settings.get_profile("others"), derandomize=True)
settings.load_profile("same")
