# Files that steer agents: for the time of a turn those stand in a workspace that its branch began
# with at the base, and what stood there lies aside; stands before repository.sh.
#
# What is aside lies in the mirror, at sortie-aside/KEY: tree/ is what stood in the workspace, base/
# what was put in its place. Whatever ends this half-way, put_back goes on from there: "moved" says
# that all of tree/ has come there, "decided" what becomes of it, "cleared" that the workspace is
# ready to take it back. Paths with a line end in them are left alone.

# Names that agents look for, at any depth, each a file or a directory.
names='.agents .aider.conf.yml .amazonq .claude .clinerules .codex .cursor .cursorrules .gemini
.goosehints .husky .kiro .mcp.json .opencode .roo .windsurf .windsurfrules AGENT.md AGENTS.md
AGENTS.override.md CLAUDE.local.md CLAUDE.md CRUSH.md GEMINI.md QWEN.md WARP.md
copilot-instructions.md opencode.json'
# What GitHub's agents look for besides.
github='agents chatmodes hooks instructions prompts'

# Makes $steering_paths a pattern of the paths in which one of the names stands.
know_paths() {
  steering_paths="(^|/)($(printf '%s\n' $names | tr '\n' '|' | sed 's/|$//; s/\./\\./g')"
  steering_paths="$steering_paths|\\.github/($(printf %s "$github" | tr ' ' '|')))(/|\$)"
}

# Prints the places in the current directory where such files stand, without what is in them.
steering() {
  set -f
  set -- .
  for name in $names; do set -- "$@" -o -name "$name"; done
  for name in $github; do set -- "$@" -o -path "*/.github/$name"; done
  set +f
  shift 2
  find . -path '*
*' -prune -o -name .git -prune -o -path ./.sortie -prune -o \( "$@" \) -prune -print | sed 's#^\./##'
}

# Prints the files below the places that are read.
files_below() {
  while read -r place; do find "./$place" -path '*
*' -prune -o ! -type d -print; done | sed 's#^\./##'
}

# Tells whether every part of the path above $1 is a directory, or may be made as one for $2.
has_place() {
  above=$1
  while case $above in */*) ;; *) false ;; esac; do
    above=${above%/*}
    if [ -L "./$above" ]; then return 1; fi
    if ! [ -d "./$above" ]; then
      if [ -e "./$above" ]; then return 1; fi
      printf '%s\n' "$above" | grep -Eq "$2" || return 1
    fi
  done
}

# Tells whether $1 and $2 are the same file, or links to the same.
same() {
  if [ -L "$1" ] || [ -L "$2" ]; then
    [ -L "$1" ] && [ -L "$2" ] && [ "$(readlink "$1")" = "$(readlink "$2")" ]
  else
    [ -f "$1" ] && [ -f "$2" ] && cmp -s "$1" "$2"
  fi
}

# Has git in the workspace in the current directory take the files that steer agents for unchanged,
# or with --no-assume-unchanged no longer: what stands there now is nobody's work. $2 are those that
# it is to show, one on a line.
marked() {
  if ! [ -d .git ] || [ -L .git ] || [ -L .git/index ] || ! [ -f .git/index ]; then return 0; fi
  found=$(git_here -c core.quotePath=false ls-files | grep -E "$steering_paths" |
    grep -Fxv "${2:-/}") || return 0
  set -f
  IFS='
'
  # shellcheck disable=SC2086
  set -- "$1" -- $found
  unset IFS
  set +f
  git_here update-index "$@" 2>/dev/null || :
}

# Puts the files that steer agents in workspace $2 with key $3 aside, and those of the commit in their
# place at which its branch left base $4 of mirror $1. Prints "aside PATH" for each that stood otherwise.
agent_files() {
  put_back "$1" "$2" "$3"
  know_paths
  cd -P -- "$2"
  no_hooks
  aside=$1/sortie-aside/$3
  rm -rf "$aside.new"
  mkdir -p "$aside.new/tree" "$aside.new/base"
  # What the workspace says of that is believed where the base has the commit.
  fork=$(git_here merge-base HEAD "refs/remotes/origin/$4" 2>/dev/null) || fork=
  if [ -z "$fork" ] || ! g --git-dir="$1" merge-base --is-ancestor "$fork" "refs/heads/$4" 2>/dev/null; then
    fork=$(g --git-dir="$1" rev-parse "refs/heads/$4")
  fi
  g --git-dir="$1" ls-tree -r -z "$fork" | tr '\0' '\n' |
    grep -E "^(100|120)[0-9]* blob [0-9a-f]*	" |
    awk -F '\t' -v steering="$steering_paths" '$2 ~ steering' |
    GIT_INDEX_FILE="$aside.new/index" git --git-dir="$1" update-index --index-info
  if [ -f "$aside.new/index" ]; then
    want_lfs=0
    GIT_INDEX_FILE="$aside.new/index" GIT_DIR="$1" GIT_WORK_TREE="$aside.new/base" filtered \
      checkout-index -q -a --prefix="$aside.new/base/"
  fi
  (cd "$aside.new/base" && find . ! -type d | sed 's#^\./##' | sort) >"$aside.new/placed"
  steering | files_below | sort >"$aside.new/stood"
  changed=$(
    comm -3 "$aside.new/placed" "$aside.new/stood" | tr -d '\t'
    comm -12 "$aside.new/placed" "$aside.new/stood" | while read -r file; do
      same "./$file" "$aside.new/base/$file" || printf '%s\n' "$file"
    done
  )
  if [ -z "$changed" ]; then
    rm -rf "$aside.new"
    return
  fi
  printf '%s\n' "$changed" | sed 's/^/aside /'
  mv "$aside.new" "$aside"
  steering | while read -r place; do
    case $place in */*) mkdir -p "$aside/tree/${place%/*}" ;; esac
    mv -- "./$place" "$aside/tree/$place"
  done
  : >"$aside/moved"
  while read -r file; do
    has_place "$file" "$steering_paths" || continue
    case $file in */*) mkdir -p "./${file%/*}" ;; esac
    cp -P "$aside/base/$file" "./$file"
  done <"$aside/placed"
  # What the base has changed since is shown as changed, or git would refuse to merge it.
  marked --assume-unchanged \
    "$(g --git-dir="$1" diff-tree -r --name-only --no-renames "$fork" "refs/heads/$4")"
}

# Takes away the hooks that git runs for whoever works in the workspace in the current directory.
no_hooks() {
  if ! [ -d .git ] || [ -L .git ]; then return 0; fi
  if [ -L .git/hooks ]; then rm -f .git/hooks; else rm -rf .git/hooks; fi
  if [ -L .git/config ]; then return 0; fi
  case $(git_here config --local --get-all core.hooksPath 2>/dev/null) in
    '' | .husky | .husky/_) ;;
    *) git_here config --local --unset-all core.hooksPath 2>/dev/null || : ;;
  esac
}

# Puts back in workspace $2 with key $3 what was put aside in mirror $1. What was changed in the
# meantime is kept: merged with what comes back, where that can be done.
put_back() (
  aside=$1/sortie-aside/$3
  [ -d "$aside" ] || exit 0
  know_paths
  cd -P -- "$2" 2>/dev/null || exit 0
  if [ -e "$aside/moved" ] && ! [ -e "$aside/cleared" ]; then
    if ! [ -e "$aside/decided" ]; then
      while read -r file; do
        if same "./$file" "$aside/base/$file"; then
          printf 'ours %s\n' "$file"
        elif [ -e "./$file" ] || [ -L "./$file" ]; then
          printf 'merge %s\n' "$file"
        elif has_place "$file" "$steering_paths"; then
          printf 'drop %s\n' "$file" # it was deleted in the meantime
        fi
      done <"$aside/placed" >"$aside/decided.new"
      steering | files_below | sort | comm -13 "$aside/placed" - | sed 's/^/drop /' \
        >>"$aside/decided.new" # it was made in the meantime
      mv "$aside/decided.new" "$aside/decided"
    fi
    while read -r what file; do
      case $what in
        ours) rm -f "./$file" ;;
        merge)
          if plain "./$file" && plain "$aside/tree/$file" && plain "$aside/base/$file" &&
            git merge-file -p -q "./$file" "$aside/base/$file" "$aside/tree/$file" \
              >"$aside/merged" 2>/dev/null; then
            cat "$aside/merged" >"./$file"
          fi
          ;;
      esac
      [ "$what" = ours ] || rm -f "$aside/tree/$file"
    done <"$aside/decided"
    mv "$aside/decided" "$aside/cleared"
  fi
  steering | while read -r place; do
    if [ -d "./$place" ] && ! [ -L "./$place" ]; then
      find "./$place" -depth -type d -exec rmdir {} + 2>/dev/null || :
    fi
  done
  (cd "$aside/tree" && steering) | while read -r place; do
    has_place "$place" '^' || continue
    case $place in */*) mkdir -p "./${place%/*}" ;; esac
    if ! [ -e "./$place" ] && ! [ -L "./$place" ]; then
      mv -- "$aside/tree/$place" "./$place"
      continue
    fi
    (cd "$aside/tree" && printf '%s\n' "$place" | files_below) | while read -r file; do
      if [ -e "./$file" ] || [ -L "./$file" ] || ! has_place "$file" '^'; then continue; fi
      case $file in */*) mkdir -p "./${file%/*}" ;; esac
      mv -- "$aside/tree/$file" "./$file"
    done
  done
  rm -rf "$aside"
  marked --no-assume-unchanged
)

# Tells whether $1 is a file, and no link.
plain() {
  [ -f "$1" ] && ! [ -L "$1" ]
}
