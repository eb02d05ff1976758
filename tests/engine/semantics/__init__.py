"""The contract of a workflow as tests, written from the contract and apart from the engine."""
