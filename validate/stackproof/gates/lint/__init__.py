"""Formatting of what lands, with the tree's own linter settings, in the messages that ``lintrunner`` reads."""
