"""The canvas: the document as cards, edges and loop regions, and the gestures that change it."""
