"""What serves locks of package indexes and of conda channels alike."""
