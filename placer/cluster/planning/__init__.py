"""What is to be bound, and whether it still may be: decided from what was read and heard, without a request."""
