"""Volcano's greedy: jobs by queue, priority and share; HyperNodes tier by tier, each tried and rolled back."""
