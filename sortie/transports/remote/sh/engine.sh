# Runs a command of a container engine, its arguments. Behind what it says stand its status and what it has
# complained of, each with a NUL before it.
{ complaint=$("$@" 2>&1 >&3 3>&-); status=$?; } 3>&1
printf '\0%s\0%s' "$status" "$complaint"
