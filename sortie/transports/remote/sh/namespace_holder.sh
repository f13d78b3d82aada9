# Becomes what makes a PID namespace, with the words of its arguments, and keeps it. Its init runs
# $idle, and reaps the processes that it adopts. It says "ready" when the namespace is there, or what went wrong.
become_holder() { exec "$@" /bin/sh -c "echo ready; exec >/dev/null 2>&1; $idle" </dev/null 2>&1; }
