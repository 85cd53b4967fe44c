"""Scenarios on the stand-in device: run, compared with the base commit, collected."""
