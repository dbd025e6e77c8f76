from pyrelay import dispatch

Tracing = dispatch.mode("tracing of operators")
