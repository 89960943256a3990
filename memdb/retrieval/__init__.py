"""How memory is found again, across layers."""
