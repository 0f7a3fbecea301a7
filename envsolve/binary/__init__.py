"""What compiled files say: what a library needs, which GPUs it holds code for, and which file a loader would take."""
