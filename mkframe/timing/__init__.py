"""Clocks and samplers. torch is imported here, never above the worker."""
