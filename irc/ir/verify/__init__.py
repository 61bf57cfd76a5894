"""The verifier: structure and visibility, then rules by operator, attribute and schema."""
