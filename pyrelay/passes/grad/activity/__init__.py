"""Which values derivatives flow through."""
