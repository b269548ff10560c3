"""The protocol's Promela models and the runner that checks them with Spin."""
