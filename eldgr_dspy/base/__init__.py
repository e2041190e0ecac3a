"""What every room uses: files, their limits, the system, named objects and small formats."""
