"""Memory blocks (Asterix document): named texts of a session, each of a limited size."""
