"""Running one workflow for each row of a table: here or on a cluster, taken up again where it broke off."""
