"""The session keeper: a small process that owns one stdio server, so that a worker may die and its call goes on.

Standard library only, and outside of `runs.mcp_client`, whose import alone would cost a keeper seconds and 60 MB.
`python -m runs.keeper SOCKET` is the process (`process`); `runs.mcp_client.kept` starts it and talks to it.
"""
