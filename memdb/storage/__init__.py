"""How memory reaches the disk. The only folder that knows a driver or a dialect."""
