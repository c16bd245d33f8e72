"""
An MCP server for the git operations that need the network and the user's credentials: fetch, pull, push and clone.

It connects to the address in the call, which the policy judged and a person saw, whatever the repository's settings.
The repository that the agent writes and the one with network access are never in the same sandbox: objects are
transferred as a bundle, or through a bare repository that the agent's side can only read.
"""
