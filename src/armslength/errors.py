"""Every error that armslength raises on purpose. A message is one line: what happened, and what to do."""

from collections.abc import Mapping


def unsupported(what: str, found: int, supported: int) -> str:
    """Why a file of another version of a format is refused, and what to do."""
    if found > supported:
        return f"{what} has version {found} of its format, which is newer than version {supported}: update armslength"
    return (
        f"{what} has version {found} of its format, which armslength 0.2 or older wrote and which was never published; "
        f"this armslength reads version {supported}: make it again (what was released with it stays spent)"
    )


def printable(text: str) -> str:
    """A text from elsewhere, the name of a file for example, as it can be shown: on one line, its odd characters escaped."""
    if text.isprintable():
        return text
    escaped = (c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
    return "".join(escaped)


_CONTEXT = vars(BaseException)["__context__"]


NO_MEMORY = (
    "this machine has too little free memory; end other programs, use fewer threads, or take another machine"
)


class ArmslengthError(Exception):
    """The root of every error that armslength raises on purpose. Its message is one line, whatever names it shows.

    It has no context: what another package raised before it may quote the data, and tools that collect errors send contexts along even where
    a traceback does not show them.

    Args:
        message: What happened, and what to do, in words of the library.
        arguments: The names of the arguments that the message speaks of, as they stand in it.
    """

    def __init__(self, message: object = "", *arguments: str) -> None:
        super().__init__(message, *arguments)
        self.__suppress_context__ = True  # for whatever does not ask the property below

    @property
    def arguments(self) -> tuple[str, ...]:
        """The names of the arguments that the message speaks of."""
        return self.args[1:]

    def message(self, names: Mapping[str, str]) -> str:
        """The message with other names in place of arguments: `--repeat` for `repeat=True`, for example."""
        text = str(self)
        for argument in self.arguments:
            if argument in names:
                form = next(
                    form
                    for form in (f"{argument}=True", f"{argument}=", argument)
                    if form in text or form == argument
                )
                has_value = form.endswith("=")  # nothing else in a message does, so that all can be replaced
                text = text.replace(form, names[argument] + " " * has_value, -1 if has_value else 1)
        return text

    @property
    def __context__(self) -> None:
        """Always None; what Python noted down is dropped."""
        _CONTEXT.__set__(self, None)

    @__context__.setter
    def __context__(self, error: BaseException | None) -> None:
        """Nothing is kept."""

    def __str__(self) -> str:
        """The message; what could break the line, in the name of a file for example, is escaped."""
        return printable(str(self.args[0]))


class MissingFileError(ArmslengthError, FileNotFoundError):
    """There is no such file or folder."""


class UnknownNameError(ArmslengthError, KeyError):
    """No row, item or column has this name."""


class MissingPackageError(ArmslengthError, ImportError):
    """An optional package is not installed; the message says which extra has it."""


class ParameterError(ArmslengthError, ValueError):
    """A public argument (a size, a seed, a privacy parameter) breaks its rule."""


class InputError(ArmslengthError, ValueError):
    """Data or items have the wrong form. The message never shows a value of the data."""


class OutOfMemoryError(ArmslengthError, MemoryError):
    """The memory that was allowed, or that this machine has, is too little."""


class IncompatibleSketchesError(ArmslengthError):
    """Sketches that do not share a space cannot be compared or added."""


class BudgetError(ArmslengthError):
    """The ledger refuses the release; nothing was drawn."""


class NotResolvableError(ArmslengthError):
    """No configuration resolves the distances of interest; the message says what would be needed."""


class FormatError(ArmslengthError):
    """A file is not what it should be."""


class UnsupportedVersionError(FormatError):
    """A file was written by another version of armslength."""


class CorruptFileError(FormatError):
    """A file is damaged, cut off, or was edited."""


def plural(count: int, one: str, many: str = "") -> str:
    """A number with its noun: 1 row, 2 rows."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
