# Asks git about trees in which an agent has worked; stands before other scripts.
#
# Whoever worked there may have written the repository's configuration, so nothing that it names is
# run: no hook, no monitor, no filter, no transport, no pager. Nothing is written.
for name in $(env | sed -n 's/^\(GIT_[A-Z0-9_]*\)=.*/\1/p'); do unset "$name"; done
GIT_OPTIONAL_LOCKS=0 GIT_NO_LAZY_FETCH=1 GIT_ALLOW_PROTOCOL=none GIT_TERMINAL_PROMPT=0 LC_ALL=C
export GIT_OPTIONAL_LOCKS GIT_NO_LAZY_FETCH GIT_ALLOW_PROTOCOL GIT_TERMINAL_PROMPT LC_ALL
drivers=

# Runs git on the tree in the current directory, also where its configuration names another one.
git_here() {
  set -f
  IFS='
'
  for driver in $drivers; do
    set -- -c "filter.$driver.clean=" -c "filter.$driver.smudge=" -c "filter.$driver.process=" \
      -c "filter.$driver.required=false" "$@"
  done
  unset IFS
  set +f
  git --no-pager --git-dir=.git --work-tree=. -c core.hooksPath=/dev/null \
    -c core.fsmonitor=false -c core.untrackedCache=false -c core.alternateRefsCommand=true \
    "$@" </dev/null
}

# Notes the names of the filters, which are programs, so that git_here sets them to nothing. Where
# it fails, $reason says why, and nothing may be asked that looks at files.
no_filters() {
  drivers=$(git_here config --name-only --get-regexp '^filter\..*\.(clean|smudge|process)$' 2>/dev/null)
  case $? in
    0 | 1) ;;
    *) reason="git config failed: $(complaint config --list)"; return 1 ;;
  esac
  drivers=$(printf '%s\n' "$drivers" | sed 's/^filter\.//; s/\.[^.]*$//' | sort -u)
  case $drivers in
    *=*) reason="a filter of its configuration has a '=' in its name"; return 1 ;;
  esac
}

# Prints the last line of what git complains of.
complaint() {
  git_here "$@" 2>&1 >/dev/null | tail -n 1
}
