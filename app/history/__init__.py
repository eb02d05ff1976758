"""The history of a run as the window shows it: iterations in a table and a chart, and what each of them did."""
