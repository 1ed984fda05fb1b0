"""What a configuration may hold: its types, the conversion to them, and the values that every run refuses.

Plain data without hydra, omegaconf or a device, so that a report's configuration can be checked where nothing else is installed.
"""
