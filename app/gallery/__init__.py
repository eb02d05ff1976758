"""What a person sees first: templates with their pictures, recent files, and one line about the model."""
