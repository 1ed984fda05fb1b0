"""What this machine can and cannot measure, and what to do about it. Nothing is ever set or changed."""
