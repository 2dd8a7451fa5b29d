"""The commands, a module for each group: ``add`` declares their options, the rest calls and prints."""
