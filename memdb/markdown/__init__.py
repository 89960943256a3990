"""A folder of Markdown notes <-> knowledge pages."""
