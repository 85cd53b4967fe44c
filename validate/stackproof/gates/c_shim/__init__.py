"""The C-shim ABI rule as a verdict: declarations are only ever added, and the headers are what torchgen makes."""
