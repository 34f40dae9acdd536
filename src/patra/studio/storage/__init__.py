"""Rows and files of a production: the store, artifacts by hash, their copies in object storage, a full disk; what
release 0.2.0 leaves out of its rows (`earlier_release`).
"""
