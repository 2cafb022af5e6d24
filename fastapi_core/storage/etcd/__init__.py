"""The store that several servers share: an etcd cluster. Nothing of it is imported unless a flag names one."""
