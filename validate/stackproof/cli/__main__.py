"""``python -m stackproof.cli``."""

from stackproof.cli.main import main

main()
