"""What a process in service needs: locks on files, threads, a log and saved state."""
