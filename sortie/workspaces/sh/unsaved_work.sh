# Tells what of the git trees in the current directory, or right below it, is nowhere else.
#
# Prints for each tree: tree CHANGES COMMITS BRANCH, or: unknown REASON. At last: end.

unknown() {
  printf 'unknown %.300s\n' "$(printf %s "$1" | tr '\n' ' ')"
}

# Runs git, and says what it complains of where it fails.
asked() {
  answer=$(git_here "$@" 2>/dev/null) && return 0
  unknown "git $command failed: $(complaint "$@")"
  return 1
}

look() {
  no_filters || { unknown "$reason"; return; }
  command=status
  asked status --porcelain --untracked-files=normal --ignore-submodules=dirty \
    -- . ':(exclude,top).sortie' || return
  changes=0
  [ -z "$answer" ] || changes=$(printf '%s\n' "$answer" | wc -l)

  command=rev-parse
  asked rev-parse --git-common-dir || return
  common=$(cd -P -- "$answer" 2>/dev/null && pwd) || { unknown "its repository is away"; return; }
  branch=$(git_here symbolic-ref -q --short HEAD) || branch=
  command=rev-list
  if git_here rev-parse -q --verify 'HEAD^{commit}' >/dev/null 2>&1; then tip=HEAD; else tip=; fi
  case $common/ in
    "$(pwd -P)"/*)
      # The repository goes with the directory: everything in it counts.
      stash=$(git_here rev-parse -q --verify refs/stash) || stash=
      asked rev-list --count $tip $stash --branches --not --remotes || return ;;
    *)
      # A work tree of a repository elsewhere, which stays: only a HEAD on no branch is lost.
      asked rev-list --count $tip --branches --not --branches --tags --remotes || return ;;
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
