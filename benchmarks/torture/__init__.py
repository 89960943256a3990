"""Torture: processes write one file while they are killed, stopped and starved; a model says what must be there.

The pieces, in the order in which they build on each other:

acts/         what is done to a scope, a file a layer: how it is drawn, what it makes of the model, how memdb is called
model.py      what a scope holds, as plain dictionaries
observe.py    what a scope holds, asked of the file through the public API
journal.py    what was intended and what was acknowledged, in files that outlive every kill
player.py     the acts of one scope, one after the other, each compared with the model; cancelled ones, too
strangers.py  every public read, asked by a user who must find nothing
worker.py     a process of several players on one handle; hunger (a full disk), forks, deaths inside a transaction
inspector.py  processes beside them: backups and exports held against the journals, checkpoints, VACUUM, check()
nursery.py    the process that all of these are forked from, so that one of them is up in milliseconds
director.py   who lives how long, and what happens meanwhile
ending.py     the whole file against the models, once all is still
command.py    python -m benchmarks torture
"""
