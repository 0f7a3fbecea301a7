"""Facts from compiled files: what a library needs, which GPUs it has code for, and which file a loader would choose."""
