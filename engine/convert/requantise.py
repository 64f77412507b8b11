"""Converting a GGUF file into one of another type: its keys stay, its matrices are expanded and quantised anew."""

from __future__ import annotations

from dataclasses import replace

from engine.convert.general_keys import FILE_TYPES, QUANTIZATION_VERSION, calibration_keys
from engine.convert.mappings import TABLES
from engine.convert.mixture import mixed
from engine.convert.model_file import Expanded, FileRows
from engine.convert.model_map import MetadataValue
from engine.convert.options import ConversionOptions
from engine.convert.plan import ConversionPlan, described, identity_of, weighted
from engine.convert.roles import is_matrix, is_router
from engine.convert.tensor_plan import TensorPlan
from engine.errors import InvalidRequestError, ModelFormatError, UnsupportedModelError
from engine.gguf import GGUFReader, TensorInfo, TensorType
from engine.gguf.expansions import EXPANSIONS
from engine.gguf.value_types import ValueType

_PLAIN = (TensorType.F32, TensorType.F16, TensorType.BF16)
# Of the old file alone: where its data lie, how it was quantised, what was measured with it.
_UNTRUE = ("general.alignment", "general.quantized_by", "split.", "quantize.", "colibri.proof.", "colibri.calibration.")
_CARVING, _DEMONSTRATION = "colibri.carve.", "colibri.carve.is_demonstration"


def plan_requantising(reader: GGUFReader, options: ConversionOptions | None = None) -> ConversionPlan:
    """Map the model that `reader` has open, which must stay open, to one of another type; without a type, to itself.

    Tensors that have their type already are copied, and MXFP4 stays where anything is quantised: it is what was
    published. Raises UnsupportedModelError for an architecture that is not known, InvalidRequestError and
    ModelFormatError where the options contradict the file.
    """
    options = options or ConversionOptions()
    path, metadata = reader.paths[0], reader.metadata
    architecture = metadata.get("general.architecture")
    known = sorted({name for name, _ in TABLES.values()})
    if not isinstance(architecture, str) or architecture not in known:
        raise UnsupportedModelError(
            f"{path}: expected a model of an architecture that can be converted, found {str(architecture)[:80]!r}. "
            f"Known are {', '.join(known)}."
        )
    _check_options(reader, architecture, options)
    type = options.type if options.mixture is None else options.mixture.type
    tensors = [_planned(reader, tensor, options, type) for tensor in reader.tensors.values()]
    keys = _kept_keys(reader)
    if options.mixture is not None:
        matrices = {t.name for t in tensors if is_matrix(t.name, t.shape) and not _is_published(reader.tensors[t.name])}
        tensors = mixed(options.mixture, tensors, matrices, described(keys, architecture, tensors, options))
    tensors = [weighted(_checked(reader, tensor), options.importance) for tensor in tensors]
    keys |= _changed_keys(architecture, options, tensors) | calibration_keys(options.importance, tensors)
    return ConversionPlan(
        architecture,
        _most_common(tensors) if type is None else type,
        keys,
        tuple(tensors),
        options.mixture,
        identity_of(reader.paths, tensors),
        _quantised_types(reader),
    )


def _quantised_types(reader: GGUFReader) -> tuple[str, ...]:
    """Those of the file's matrices, the most bytes first."""
    n_bytes: dict[str, int] = {}
    for tensor in reader.tensors.values():
        if is_matrix(tensor.name, tensor.shape) and tensor.type not in _PLAIN:
            n_bytes[tensor.type.name] = n_bytes.get(tensor.type.name, 0) + tensor.n_bytes
    return tuple(sorted(n_bytes, key=lambda name: -n_bytes[name]))


def _planned(reader: GGUFReader, tensor: TensorInfo, options: ConversionOptions, type: TensorType | None) -> TensorPlan:
    """The tensor in the type that it is to have, before a mixture; None: in its own."""
    wanted = tensor.type
    if type is not None and is_router(tensor.name):
        wanted = options.router_type
    elif type is not None and is_matrix(tensor.name, tensor.shape):
        wanted = tensor.type if options.mixture is not None and _is_published(tensor) else type
    return TensorPlan(tensor.name, tensor.shape, wanted, Expanded(reader, tensor), (tensor.name,))


def _is_published(tensor: TensorInfo) -> bool:
    return tensor.type is TensorType.MXFP4


def _checked(reader: GGUFReader, tensor: TensorPlan) -> TensorPlan:
    """The plan with the file's own bytes where the type is the file's. Raises UnsupportedModelError."""
    found = reader.tensors[tensor.name]
    if found.type is tensor.type:
        return replace(tensor, packed=FileRows(reader, found))
    if found.type not in EXPANSIONS:
        raise UnsupportedModelError(
            f"{reader.paths[found.file_index]}: expected tensors of types whose values are known, found {found.name} "
            f"of type {found.type.name}. Choose another file of this model."
        )
    return tensor


def _check_options(reader: GGUFReader, architecture: str, options: ConversionOptions) -> None:
    path, metadata = reader.paths[0], reader.metadata
    n_experts = metadata.get(f"{architecture}.expert_count", 0)
    if options.router_pattern is not None:
        raise InvalidRequestError(
            f"{path}: a pattern for the routers' names is of use for checkpoints; in a GGUF file they have one name. "
            "Leave --router-pattern out."
        )
    if options.expert_count is not None and options.expert_count != n_experts:
        raise ModelFormatError(
            f"{path}: {options.expert_count} experts were asked for, found {architecture}.expert_count = {n_experts}."
        )
    if options.top_k is not None and not (isinstance(n_experts, int) and 1 <= options.top_k <= n_experts):
        raise ModelFormatError(
            f"{path}: expected from 1 to {n_experts} experts for a token ({architecture}.expert_count), found "
            f"{options.top_k}."
        )


def _kept_keys(reader: GGUFReader) -> dict[str, MetadataValue]:
    """The file's keys as they are, but for what is true of that file alone."""
    keys = dict[str, MetadataValue]()
    for key, encoded in reader.encoded_keys().items():
        is_measured = key.startswith(_CARVING) and key != _DEMONSTRATION
        if not key.startswith(_UNTRUE) and not is_measured:
            keys[key] = MetadataValue(reader.metadata[key], ValueType(int.from_bytes(encoded[:4], "little")), encoded)
    return keys


def _changed_keys(architecture: str, options: ConversionOptions, tensors: list[TensorPlan]) -> dict[str, MetadataValue]:
    keys = dict[str, MetadataValue]()
    if options.name is not None:
        keys["general.name"] = MetadataValue(options.name, ValueType.STRING)
    if options.top_k is not None:
        keys[f"{architecture}.expert_used_count"] = MetadataValue(options.top_k, ValueType.UINT32)
    if options.mixture is not None:
        keys["general.file_type"] = MetadataValue(options.mixture.number, ValueType.UINT32)
    elif options.type is not None:
        keys["general.file_type"] = MetadataValue(FILE_TYPES[options.type], ValueType.UINT32)
    if any(tensor.type.is_quantised for tensor in tensors):
        keys["general.quantization_version"] = MetadataValue(QUANTIZATION_VERSION, ValueType.UINT32)
    return keys


def _most_common(tensors: list[TensorPlan]) -> TensorType:
    """The type that most bytes of the matrices have."""
    n_bytes: dict[TensorType, int] = {}
    for tensor in tensors:
        if is_matrix(tensor.name, tensor.shape):
            n_bytes[tensor.type] = n_bytes.get(tensor.type, 0) + tensor.n_bytes
    return max(n_bytes, key=lambda type: n_bytes[type], default=TensorType.F32)
