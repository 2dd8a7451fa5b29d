"""Upgrades of clusters and their ways back: models that read recorded runs, and the text of the commands about them."""
