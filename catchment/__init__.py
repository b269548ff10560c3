"""Training models in the network: gradients added up by a P4 switch.

The one import name of this project: ``catchment.host``, ``catchment.controlplane`` and so on are the folders of the
same names at the top of the checkout, which this package holds as links.
"""
