"""How far a converted model is from its source, measured, and written into the file for everybody to see.

proof = compare("model-BF16.gguf", "model-Q4_K_M.gguf", texts)
print(proof.sentence)
store(proof, "model-Q4_K_M.gguf")
"""

from engine.convert.proof.compare import compare, compare_engines
from engine.convert.proof.record import PREFIX, Proof, proof_of, store

__all__ = ["PREFIX", "Proof", "compare", "compare_engines", "proof_of", "store"]
