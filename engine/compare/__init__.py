"""What differs between two texts, word by word. Knows no runs and no window: texts in, spans out."""
