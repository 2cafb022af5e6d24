"""ResourceQuota: what objects use, which quotas cover them, and counting it without races."""
