"""Show what a sandbox or container holds back, by running a hostile program of ours in it."""
