"""What is written down about requests: policy, events and the backends that keep them."""
