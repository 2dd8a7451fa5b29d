"""Conversations with coordinators of classic groups."""

from kipcheck.conformance.protocols.group.strategies.conversations import group_conversations

CONVERSATIONS = {"group": group_conversations}
