"""Code that derivers of transforms share: the store of functions, bodies as steps, leaves,
activity."""
