"""The door for agents: the Model Context Protocol over HTTP, at ``/mcp``.

The library of the protocol takes a second to load, so only ``app.mcp.exchange`` imports it, at the
first message.
"""
