"""The errors that Colibri raises: each says what was expected, what was found, where, and what to do."""

from __future__ import annotations


class ColibriError(Exception):
    """The root of every error that Colibri raises on purpose. Its text is fit to be shown to a user."""


class ModelFormatError(ColibriError):
    """A file is not what it claims to be: damaged, truncated, foreign, or contradicting itself."""


class MissingFileError(ModelFormatError):
    """A part of a model that is not where it should be, or cannot be read."""


class ContradictionError(ModelFormatError):
    """Parts of a model that do not belong together, as a config.json and weights of other sizes."""


class UnsupportedModelError(ColibriError):
    """A sound file that this version cannot run: an unknown architecture, tensor type or tokenizer."""


class UnsafeFileError(UnsupportedModelError):
    """A file that could run code or reach outside its folder; it is not opened."""


class TokenizerError(ColibriError):
    """A vocabulary that cannot be used, or text that cannot be encoded with it."""


class TemplateError(ColibriError):
    """A chat template that cannot be compiled or rendered."""


class InvalidRequestError(ColibriError):
    """A request whose values are out of range or contradict each other."""


class ContextLengthError(InvalidRequestError):
    """A prompt that does not fit the context; the text gives both numbers."""


class OutOfMemoryPlanError(ColibriError):
    """A memory plan that this machine cannot hold; the text says what is needed and what there is."""


class PlanError(ColibriError):
    """A plan whose operand would lie outside its buffer; nothing of it is run."""


class NumericalError(ColibriError):
    """Logits that are not finite: the request ends instead of continuing with noise."""


class ConstraintError(ColibriError):
    """An answer that cannot be held to its output format any further."""


class KernelBuildError(ColibriError):
    """Kernels that could not be compiled or loaded on this machine."""


class FileInUseError(ColibriError):
    """A file that another process is writing."""


class EngineClosedError(ColibriError):
    """A call to an engine that has been closed."""
