from pyrelay import dispatch

with dispatch.include("Tracing"):
    pass
