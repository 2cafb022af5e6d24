"""The kube-apiserver composition: resources, storage and routes behind the generic server."""
