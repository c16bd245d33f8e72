"""What is on a screen or in a sound, found out by confined processes: nothing of either is parsed in this one."""
