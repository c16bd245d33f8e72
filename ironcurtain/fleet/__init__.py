"""Several machines as one: members find each other over NATS, and reach each other's control API through it."""
