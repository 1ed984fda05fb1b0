"""Configuration: from the command line and YAML files to one typed, frozen `Config`.

Hydra and omegaconf end here: `app` imports them, and what leaves this package is plain data. Importing the package costs
neither of them.
"""
