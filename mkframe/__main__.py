"""`python -m mkframe`."""

from mkframe.cli.main import entry

if __name__ == "__main__":
    entry()
