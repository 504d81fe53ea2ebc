"""What a cluster can do to a call, each as one clear line."""

from __future__ import annotations

from powersum.core.errors import InputError


class ClusterError(InputError):
    """Workers or their scheduler are gone, cannot be reached, or cannot do the work; the message is one line."""
