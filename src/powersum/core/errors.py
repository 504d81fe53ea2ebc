"""The exceptions that mean «this cannot be done», always a single clear line."""


class InputError(ValueError):
    """Bad input from the user: a file, a name, an option.

    The message is one line that names the place and the offending value. The command line prints it and
    exits with code 2; it never shows a traceback for it.
    """


class TooLittleMemoryError(InputError):
    """A structure does not fit the memory given; whoever can do with a smaller one catches it."""
