"""What facts of several subjects rest on. Modules here declare no facts."""
