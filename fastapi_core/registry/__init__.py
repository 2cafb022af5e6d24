"""What is known of resources: definitions, metadata rules, the generic store, tables."""
