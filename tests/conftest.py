"""What all tests have in common: examples are the same in every run, and none of them has a time."""

from __future__ import annotations

import signal

from hypothesis import HealthCheck, settings

# A machine that stands still for half a minute is no fault of an example, nor of what draws it.
settings.register_profile("others", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", settings.get_profile("others"), derandomize=True)
settings.load_profile("same")

# A shell that starts tests in the background has them ignore SIGINT, and powersum leaves an ignored signal ignored:
# tests that interrupt themselves, or a process that they start, would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
