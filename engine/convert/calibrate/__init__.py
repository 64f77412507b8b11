"""Which inputs of each matrix matter: measured on a text, for each expert, and kept in a file.

importance = calibrate("model-BF16.gguf", texts)
write_importance(importance, "model.imatrix.gguf")
importance.of("blk.3.ffn_down_exps.weight", 2048)  # (n_experts, 2048) float32
"""

from engine.convert.calibrate.collect import calibrate
from engine.convert.calibrate.files import read_importance, write_importance
from engine.convert.calibrate.importance import ImportanceMatrix, TensorInputs
from engine.convert.calibrate.passages import passages

__all__ = [
    "ImportanceMatrix",
    "TensorInputs",
    "calibrate",
    "passages",
    "read_importance",
    "write_importance",
]
