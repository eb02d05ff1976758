"""Files that earlier versions of the program wrote, and the scripts that made them."""
