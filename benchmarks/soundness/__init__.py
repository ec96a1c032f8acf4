"""The soundness study: does any certificate lie, and how often is there one?

Every answer of graphreg to a random problem is compared with a reference that shares no code with it.
"""
