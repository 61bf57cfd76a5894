"""Where results lie: storage classes, results over dead operands, planned memory, arrays that grow."""
