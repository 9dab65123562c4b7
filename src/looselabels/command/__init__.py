"""The command `looselabels`: everything that reads or writes tables and folders."""
