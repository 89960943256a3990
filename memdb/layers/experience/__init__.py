"""What an agent has been through and what it learnt (loki document): episodes, patterns, skills, what each is worth."""
