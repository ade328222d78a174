"""`python -m podferry` is `podferry`."""

from podferry.cli.entry_point import program

if __name__ == "__main__":
    program()
