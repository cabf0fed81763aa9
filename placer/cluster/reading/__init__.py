"""What is read of a cluster: requests that change nothing, and what is made of the answers."""
