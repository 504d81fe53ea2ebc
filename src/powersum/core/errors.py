"""The exceptions that mean «this cannot be done», always a single clear line."""


class InputError(ValueError):
    """Bad input from the user: a file, a name, an option.

    The message is one line that names the place and the offending value. The command line prints it and
    exits with code 2; it never shows a traceback for it.
    """


class ImpossibleError(InputError):
    """Evidence or a model of probability 0, which has no distribution and no policy.

    The command line takes it for an answer: it prints it, writes the status ``infeasible`` as JSON, and exits with 0.
    """


class TooLittleMemoryError(InputError):
    """A structure does not fit the memory given; whoever can do with a smaller one catches it."""
