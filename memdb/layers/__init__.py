"""What an agent remembers: one file a layer, its SQL beside its methods."""
