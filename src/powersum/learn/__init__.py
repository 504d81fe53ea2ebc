"""Learning tables from data with hidden variables: by upper bounds on the likelihood, or by margins."""

from powersum.learn.example import Example
from powersum.learn.fitting import Fit, fit
from powersum.learn.loss import OBJECTIVES, Loss

__all__ = ["OBJECTIVES", "Example", "Fit", "Loss", "fit"]
