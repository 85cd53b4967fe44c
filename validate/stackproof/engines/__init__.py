"""What gates run on. An engine knows no op and no gate."""
