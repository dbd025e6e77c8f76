from pyrelay import dispatch

GPU = dispatch.device("cuda:1")
