"""
An MCP server for what git needs the network and the person's credentials for: fetch, pull, push and clone.

It connects to the address of the call, which the policy judged and a person saw, whatever a repository's own settings
say. The repository that the agent writes and the one that speaks to the network are never in the same sandbox: objects
go from one to the other as a bundle, or through a bare repository that the agent's side can only read.
"""
