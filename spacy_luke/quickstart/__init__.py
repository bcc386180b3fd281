"""`init-config`: what the data are like, which settings follow and why, and what training will take"""
