"""Kernel launches and CUDA graphs: what an engine's launches become."""
