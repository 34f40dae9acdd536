"""Every setting and where its value came from; references to secrets; what is open to whom, and what may be called."""
