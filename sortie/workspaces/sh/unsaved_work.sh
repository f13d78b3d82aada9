# Tells what of the git trees in the current directory, or right below it, is nowhere else.
#
# Prints for each tree: tree CHANGES COMMITS BRANCH, or: unknown REASON. At last: end.
# Whoever worked here may have written the repository's configuration, so nothing that it names is
# run: no hook, no monitor, no filter, no transport. Nothing is written.
for name in $(env | sed -n 's/^\(GIT_[A-Z0-9_]*\)=.*/\1/p'); do unset "$name"; done
GIT_OPTIONAL_LOCKS=0 GIT_NO_LAZY_FETCH=1 GIT_ALLOW_PROTOCOL=none GIT_TERMINAL_PROMPT=0 LC_ALL=C
export GIT_OPTIONAL_LOCKS GIT_NO_LAZY_FETCH GIT_ALLOW_PROTOCOL GIT_TERMINAL_PROMPT LC_ALL

unknown() {
  printf 'unknown %.300s\n' "$(printf %s "$1" | tr '\n' ' ')"
}

# Runs git on the tree in the current directory, also where its configuration names another one.
git_here() {
  git --git-dir=.git --work-tree=. "$@" </dev/null
}

# Runs git as above, and says what it complains of where it fails.
asked() {
  answer=$(git_here "$@" 2>/dev/null) && return 0
  unknown "git $command failed: $(git_here "$@" 2>&1 >/dev/null | tail -n 1)"
  return 1
}

# Sets the filters of the configuration to nothing, which are programs, and looks.
look() {
  drivers=$(git_here config --name-only --get-regexp '^filter\..*\.(clean|process)$' 2>/dev/null)
  case $? in
    0 | 1) ;;
    *) unknown "git config failed: $(git_here config --list 2>&1 >/dev/null | tail -n 1)"; return ;;
  esac
  set -f
  IFS='
'
  for driver in $drivers; do
    driver=${driver#filter.}
    driver=${driver%.*}
    case $driver in
      *=*) unknown "a filter of its configuration has a '=' in its name"; return ;;
    esac
    set -- "$@" -c "filter.$driver.clean=" -c "filter.$driver.process="
    set -- "$@" -c "filter.$driver.required=false"
  done
  unset IFS
  set +f
  set -- -c core.fsmonitor=false -c core.hooksPath=/dev/null -c core.untrackedCache=false "$@"

  command=status
  asked "$@" status --porcelain --untracked-files=normal --ignore-submodules=dirty \
    -- . ':(exclude,top).sortie' || return
  changes=0
  [ -z "$answer" ] || changes=$(printf '%s\n' "$answer" | wc -l)

  command=rev-parse
  asked "$@" rev-parse --git-common-dir || return
  common=$(cd -P -- "$answer" 2>/dev/null && pwd) || { unknown "its repository is away"; return; }
  branch=$(git_here symbolic-ref -q --short HEAD) || branch=
  command=rev-list
  if git_here rev-parse -q --verify 'HEAD^{commit}' >/dev/null 2>&1; then tip=HEAD; else tip=; fi
  case $common/ in
    "$(pwd -P)"/*)
      # The repository goes with the directory: everything in it counts.
      stash=$(git_here rev-parse -q --verify refs/stash) || stash=
      asked "$@" rev-list --count $tip $stash --branches --not --remotes || return ;;
    *)
      # A work tree of a repository elsewhere, which stays: only a HEAD on no branch is lost.
      asked "$@" rev-list --count $tip --branches --not --branches --tags --remotes || return ;;
  esac
  printf 'tree %d %d %s\n' "$changes" "$answer" "$branch"
}

tree() (
  cd -P -- "$1" 2>/dev/null || exit 0
  [ -e .git ] || [ -L .git ] || exit 0
  if command -v git >/dev/null 2>&1; then look; else unknown 'there is no git to ask'; fi
)

if [ -e .git ] || [ -L .git ]; then
  tree .
else
  # No link is followed: what it leads to stays.
  for directory in */ .[!.]*/; do
    [ -L "${directory%/}" ] || tree "./$directory"
  done
fi
echo end
