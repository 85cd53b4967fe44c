"""``python -m patchstack.cli``."""

from patchstack.cli.main import main

main()
