"""Conversations with consumers of classic groups."""

from kipcheck.conformance.protocols.member.strategies.conversations import conversations

CONVERSATIONS = {"member": conversations}
