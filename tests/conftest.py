"""What holds for every test: which skips are allowed where (:mod:`skips`)."""

pytest_plugins = ["skips"]
