"""Engines under NVIDIA's compute-sanitizer: memcheck, racecheck, synccheck, initcheck, each in a process of its own."""
