"""Runs inside the sandbox and executes one step.

Shipped into the sandbox by content hash and imported there as
``dagger_kernel_runner``: it imports the standard library and IPython only, and
nothing of the rest of this package.
"""
