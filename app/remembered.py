"""One request for long work as a file, so that what a crash or a closed window interrupted can be taken up again."""

from __future__ import annotations

import json
import logging
import os
from dataclasses import asdict, fields
from typing import Any, Generic, TypeVar, get_args, get_type_hints

from app import paths

logger = logging.getLogger(__name__)

T = TypeVar("T")


class Remembered(Generic[T]):
    """`kind`: a dataclass whose values are str, int, bool or None; `file_name`: below the data folder."""

    def __init__(self, kind: type[T], file_name: str) -> None:
        self._kind, self._file_name = kind, file_name

    def remember(self, request: T) -> None:
        """Write down what is about to be done. Raises OSError."""
        path = paths.data_dir() / self._file_name
        temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
        values = asdict(request)  # type: ignore[call-overload]
        temporary.write_text(json.dumps(values, ensure_ascii=False), encoding="utf-8")
        temporary.replace(path)

    def forget(self) -> None:
        """The work has come to an end of its own."""
        (paths.data_dir() / self._file_name).unlink(missing_ok=True)

    def recall(self) -> T | None:
        """What was written down last; None if there is nothing, or nothing that can be used."""
        path = paths.data_dir() / self._file_name
        try:
            return self._checked(json.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError) as error:
            logger.warning("%s is left out: %s", path, error)
            return None

    def _checked(self, values: Any) -> T:
        if not isinstance(values, dict):
            raise TypeError("expected a JSON object")
        hints = get_type_hints(self._kind)
        known = {item.name for item in fields(self._kind)}  # type: ignore[arg-type]
        for name, value in values.items():
            if name in known and not isinstance(value, get_args(hints[name]) or hints[name]):
                raise TypeError(f"{name}: expected {hints[name]}, found {value!r:.80}")
        return self._kind(**values)
