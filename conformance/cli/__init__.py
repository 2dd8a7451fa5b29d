"""The commands of the command line, one module for each group. ``add`` declares the options of a group."""
