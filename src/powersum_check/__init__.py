"""An independent checker of powersum's certificates: NumPy only, and nothing of powersum.

See docs/certificates.md for the format, and for why each step is a proof.
"""

from powersum_check.best import Best, Place
from powersum_check.check import Verified
from powersum_check.errors import BadFile, CheckError, Rejected
from powersum_check.marginals import check_marginals
from powersum_check.model import Factor, Model, Question
from powersum_check.outside import check, read_model
from powersum_check.shares import Share, check_shares

__all__ = [
    "BadFile",
    "Best",
    "CheckError",
    "Factor",
    "Model",
    "Place",
    "Question",
    "Rejected",
    "Share",
    "Verified",
    "check",
    "check_marginals",
    "check_shares",
    "read_model",
]
