"""A preloaded process of the embedded engine whose forked children become rooms.

Runs inside a container that bubblewrap built on the base: root of a user namespace that
maps to the kernel's own user, with no host environment, no secrets and no user data. It imports
the base's trusted libraries only, then waits. Each request forks a child which gives itself fresh
namespaces and the state's file system, drops every capability, and serves one step.
"""
