# Tells what a host has for containers: the id of the user, the home, the kind of machine, the capabilities
# that are in force, a python3 that is new enough, and an engine, nothing for what is not there. Each is
# ended by a NUL.
#
# The arguments are the names or paths of engines, of which the first that is there is taken.
caps=0 python= engine=
while read -r name value; do
  case $name in CapEff:) caps=$value ;; esac
done </proc/self/status
for one in /usr/bin/python3 /usr/local/bin/python3 /usr/bin/python3.*[0-9] /usr/local/bin/python3.*[0-9]; do
  [ -z "$python" ] && [ -x "$one" ] && "$one" -Ic 'import ctypes, os; os.pidfd_open' 2>/dev/null && python=$one
done
for one; do
  engine=$(command -v -- "$one") && break
done
printf '%s\0' "$(id -u)" "${HOME:-/}" "$(uname -m)" "$caps" "$python" "$engine"
