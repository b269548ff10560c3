"""The one exception of catchment.host.proxy."""


class ProxyError(Exception):
    """A profile, a plan or a proxy is not what was asked for; says which and what to do."""
