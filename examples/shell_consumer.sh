#!/bin/sh
# A shell command as a consumer: patra bus consume order.placed --group log --from-beginning --once -- sh shell_consumer.sh
# The envelope is on standard input. Exit code 0: handled; 65: a dead letter at once; any other: tried again later.
printf '%s attempt %s: ' "$PATRA_EVENT_ID" "$PATRA_ATTEMPT" >> orders.log
cat >> orders.log
echo >> orders.log
