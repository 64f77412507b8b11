"""Split models: the names of a model's parts, and the proof that the parts belong together."""

from __future__ import annotations

import re
from pathlib import Path

from engine.errors import ModelFormatError
from engine.gguf.header import Header, TensorInfo

_PART_NAME = re.compile(r"(?P<stem>.*)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf", re.DOTALL)
_N_NAMED = 5


def split_count(header: Header, path: Path) -> int:
    """How many parts the model of `header` has; 1 if it is not split."""
    count = header.metadata.get("split.count", 1)
    if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= 99_999:
        raise ModelFormatError(
            f"{path}: expected a number up to 99,999 for key 'split.count', found {str(count)[:80]}. "
            "The file is damaged: download it again."
        )
    return max(count, 1)


def part_paths(path: Path, count: int) -> list[Path]:
    """The paths of all `count` parts, in order, from the path of one of them.

    Raises ModelFormatError if the name is not that of a part, names another count, or if parts are missing.
    """
    match = _PART_NAME.fullmatch(path.name)
    if match is None:
        raise ModelFormatError(
            f"{path}: expected a name that ends in -00001-of-{count:05}.gguf (with the part's own number), because the "
            f"file is one of {count} parts of a split model. Give the parts their original names, in one folder."
        )
    if int(match["count"]) != count:
        raise ModelFormatError(
            f"{path}: expected one of {count} parts (key 'split.count'), found one of {int(match['count'])} by the "
            "file's name. Give the parts their original names."
        )
    paths = [path.with_name(f"{match['stem']}-{number:05}-of-{count:05}.gguf") for number in range(1, count + 1)]
    missing = [part.name for part in paths if not part.exists()]
    if missing:
        more = f" and {len(missing) - _N_NAMED} more" if len(missing) > _N_NAMED else ""
        raise ModelFormatError(
            f"{path}: expected all {count} parts of the split model in {path.parent}, found "
            f"{count - len(missing)}; missing: {', '.join(missing[:_N_NAMED])}{more}. "
            "Download the missing parts into that folder."
        )
    return paths


def join_parts(paths: list[Path], headers: list[Header]) -> dict[str, TensorInfo]:
    """All tensors of the parts; raises ModelFormatError if the parts contradict one another."""
    first = headers[0]
    tensors: dict[str, TensorInfo] = {}
    for index, (path, header) in enumerate(zip(paths, headers, strict=True)):
        _expect(path, "split.no", header.metadata.get("split.no"), index)
        _expect(path, "split.count", header.metadata.get("split.count"), len(paths))
        for key in ("split.tensors.count", "general.architecture", "general.name"):
            if key in header.metadata:
                _expect(path, key, header.metadata[key], first.metadata.get(key))
        if header.version != first.version:
            _disagree(path, "version", header.version, first.version)
        for name, tensor in header.tensors.items():
            if name in tensors:
                raise ModelFormatError(
                    f"{path}: expected each tensor in one part only, found {name!r} also in "
                    f"{paths[tensors[name].file_index].name}. The parts do not belong together: download them again."
                )
            tensors[name] = tensor
    n_tensors = first.metadata.get("split.tensors.count", len(tensors))
    if n_tensors != len(tensors):
        _disagree(paths[0], "key 'split.tensors.count'", n_tensors, f"{len(tensors)}, the tensors in all parts")
    return tensors


def _expect(path: Path, key: str, found: object, expected: object) -> None:
    if found != expected:
        _disagree(path, f"key {key!r}", found, expected)


def _disagree(path: Path, what: str, found: object, expected: object) -> None:
    raise ModelFormatError(
        f"{path}: expected {str(expected)[:80]} for {what} of this part of a split model, found {str(found)[:80]}. "
        "The parts do not belong together, or have been renamed: download them again."
    )
