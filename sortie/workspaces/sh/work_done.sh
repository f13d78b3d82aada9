# Tells what has been done since the commit $1 in the git tree of the current directory, or in the
# only one right below it. $1 is "" where there was no commit, and - where only HEAD is asked for.
#
# Prints "head COMMIT", "branch NAME", "commits COUNT", "subject ABBREVIATION TEXT" for the newest,
# "files COUNT", "uncommitted COUNT" and at last "end"; or "failed REASON" where git does not answer.
base=$1 subjects=10

failed() {
  said=$(complaint "$@")
  printf 'failed %.300s\nend\n' "git $command: ${said:-no answer}"
  exit 0
}

# Prints what is asked; where git fails, says what it complains of, and ends the script.
asked() {
  answer=$(git_here "$@" 2>/dev/null) || failed "$@"
}

# Prints the files whose content is not that of HEAD, one a line.
uncommitted() {
  git_here status --porcelain --no-renames --untracked-files=all --ignore-submodules=dirty \
    -- . ':(exclude,top).sortie' 2>/dev/null
}

count() {
  sed '/^$/d' | wc -l | tr -d ' '
}

look() {
  head=$(git_here rev-parse -q --verify 'HEAD^{commit}' 2>/dev/null) || head=
  [ -z "$head" ] || echo "head $head"
  if [ "$base" = - ]; then
    [ -n "$head" ] || { command=rev-parse; asked rev-parse --git-dir; }
    return
  fi
  no_filters || { printf 'failed %.300s\nend\n' "$reason"; exit 0; }
  command=status
  changes=$(uncommitted) || failed status --porcelain
  branch=$(git_here symbolic-ref -q --short HEAD 2>/dev/null) && printf 'branch %.300s\n' "$branch"
  changed=
  if [ -n "$head" ]; then
    since=${base:+^$base}
    command=rev-list
    asked rev-list --count "$head" $since --
    echo "commits $answer"
    asked rev-list --max-count=$subjects --format='%h %s' "$head" $since --
    printf '%s\n' "$answer" | awk 'NR % 2 == 0 { print "subject " substr($0, 1, 300) }'
    command=diff
    from=${base:-$(git_here hash-object -t tree /dev/null)}
    asked diff-tree -r --name-only --no-renames --no-ext-diff --no-textconv "$from" "$head" --
    changed=$answer
  else
    echo 'commits 0'
  fi
  named=$(printf '%s\n' "$changes" | sed 's/^...//')
  printf 'files %d\n' "$(printf '%s\n%s\n' "$changed" "$named" | sort -u | count)"
  printf 'uncommitted %d\n' "$(printf '%s\n' "$changes" | count)"
}

# A tree in the directory itself, or the only one right below it; no link is followed.
if ! [ -e .git ] && ! [ -L .git ]; then
  found=
  for directory in */ .[!.]*/; do
    [ -L "${directory%/}" ] || ! [ -e "$directory.git" ] || found="$found$directory
"
  done
  [ "$(printf '%s' "$found" | count)" = 1 ] || { echo end; exit 0; }
  cd -P -- "./${found%?}" || exit 0
fi
if command -v git >/dev/null 2>&1; then look; else echo 'failed there is no git to ask'; fi
echo end
