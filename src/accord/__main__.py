"""`python -m accord` is the `accord` command."""

from accord.cli import main

if __name__ == "__main__":
    main()
