"""The network: discovery of HyperNodes, the controllers of network objects, network costs."""
