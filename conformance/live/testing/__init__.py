"""A broker for tests of other projects: scripted steps, and what arrived (``kipcheck.testing``, ``serve --script``)."""
