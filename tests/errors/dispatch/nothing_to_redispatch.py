from pyrelay import dispatch

dispatch.redispatch()
