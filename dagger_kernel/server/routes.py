"""Where the REST API lives."""

ROOT = r"/dagger-kernel/api"
SANDBOX = ROOT + r"/sandboxes/(?P<sandbox_id>[0-9A-Za-z_-]{1,64})"
STEP = r"[0-9]{1,12}|[0-9a-f]{32}"
"""A step is named by its sequence number or its id."""
