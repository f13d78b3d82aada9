"""A stand-in for a Kubernetes cluster: an API server with what Sortie uses, and a small kubelet.

Pods are processes of this machine. A volume lies at its mount point here; so the pods of one server
share a root, in which each has a directory of its own, as it has in a real pod.
"""
