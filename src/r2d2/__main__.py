"""`python -m r2d2` is the command `r2d2`."""

from r2d2.cli import main

if __name__ == "__main__":
    main()
