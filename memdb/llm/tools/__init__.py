"""The tools by which an agent works on its own memory (Asterix document, "Built-in Memory Tools")."""
