#!/bin/sh
# A copy of the store while it is in use, its check, and the way back (stop `patra up` first).
patra backup copy.db
patra verify copy.db
patra restore copy.db --replace
patra audit
