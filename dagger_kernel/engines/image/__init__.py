"""The pre-baked base image: `recipe` and the Dockerfile that it must equal."""
