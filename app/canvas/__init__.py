"""The canvas: node cards, edges and loop regions, and the gestures that edit the document."""
