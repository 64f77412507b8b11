"""The compiled operations of the engine: written in Python, compiled by Numba, loaded as object code."""
