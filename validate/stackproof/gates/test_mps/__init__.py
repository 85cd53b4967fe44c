"""The gate "test-mps": the tests of test_mps.py that the series touches."""
