"""Run programs that are not trusted with the files, network and system calls that they were given."""
