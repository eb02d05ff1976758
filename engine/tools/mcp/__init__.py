"""Tools that other programs serve over the Model Context Protocol: what is set up, what they offer, and their calls."""
