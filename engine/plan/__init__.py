"""From a document to something that can run: problems found, loops paired with exits, bodies lifted out.

This is where networkx is used; it is imported on first use. Nothing here runs a node.
"""
