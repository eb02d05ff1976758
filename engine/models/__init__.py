"""Language models: what a call is, and every kind of model that can answer one."""
