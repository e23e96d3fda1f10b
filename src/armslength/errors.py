"""Every error that armslength raises on purpose.

    ArmslengthError
    ├── ParameterError (ValueError)   a public argument breaks its rule
    └── InputError (ValueError)       data or items have the wrong form; never shows a value of them

A message is one line: what must hold, what came, what to do.
"""


class ArmslengthError(Exception):
    """The root of every error that armslength raises on purpose."""


class ParameterError(ArmslengthError, ValueError):
    """A public argument (a size, a seed, a privacy parameter) breaks its rule."""


class InputError(ArmslengthError, ValueError):
    """Data or items have the wrong form. The message never shows a value of the data."""
