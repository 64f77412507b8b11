"""Cutting a dense model into experts: choose, plan, measure, decide, chat."""
