"""Laws of a client's traffic: what a consumer owes its broker and its group, seen on the wire alone.

By module, in the order of verdicts. A law never reads the steps of a script, only what was on the wire. A client may
reconnect, refresh its metadata, look up its coordinator twice, and use several connections.
"""
