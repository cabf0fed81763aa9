"""Many runs: instances and families × seeds × policies, a line of JSON per run, and statistics of the lines."""
