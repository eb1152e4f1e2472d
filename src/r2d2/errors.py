"""The error every layer raises for input that a person can mend.

Its message gives the name, the value and the rule. The command line prints it as one line and exits with 2.
"""


class InputError(ValueError):
    """Something the caller handed over breaks a rule that the message states."""
