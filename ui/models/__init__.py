"""Choosing and loading a model."""
