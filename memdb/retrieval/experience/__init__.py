"""Experience found and learnt from (loki document): the kind of a task, what many episodes have in common."""
