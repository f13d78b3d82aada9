# Sortie's own git commands, on a bare mirror of a repository and on what agents have left.
#
# $1 says what to do. Whoever worked in a workspace may have written its configuration, hooks and
# attributes, so that work is done in the mirror, which no agent writes to: commits come there by
# git-upload-pack, which is made to serve trees that are not trusted. What is done in a workspace
# itself is done by git_here, which runs nothing that its configuration names.
set -eu
umask 077
# A commit is what its name says, whatever else somebody wants to have read in its place.
export GIT_NO_REPLACE_OBJECTS=1

fail() {
  printf '%s\n' "$1" >&2
  exit 1
}

# Runs git here: without hooks, monitors and work in the background, and without any network.
g() {
  GIT_ALLOW_PROTOCOL=file git --no-pager -c core.hooksPath=/dev/null -c core.fsmonitor=false \
    -c core.untrackedCache=false -c core.logAllRefUpdates=false -c gc.autoDetach=false \
    -c protocol.file.allow=always -c advice.detachedHead=false -c submodule.recurse=false \
    -c checkout.workers=0 "$@" </dev/null
}

# Runs git as g does, with the network and the credential, which goes to the one server only.
remote() (
  if [ -n "${SORTIE_GIT_PASSWORD:-}" ]; then
    GIT_CONFIG_COUNT=2 GIT_CONFIG_KEY_0=credential.helper GIT_CONFIG_VALUE_0=
    GIT_CONFIG_KEY_1=credential.$SORTIE_GIT_ROOT.helper
    # shellcheck disable=SC2016
    GIT_CONFIG_VALUE_1='!f() { [ "$1" != get ] || printf "username=%s\npassword=%s\n" "$SORTIE_GIT_USERNAME" "$SORTIE_GIT_PASSWORD"; }; f'
    export GIT_CONFIG_COUNT GIT_CONFIG_KEY_0 GIT_CONFIG_VALUE_0 GIT_CONFIG_KEY_1 GIT_CONFIG_VALUE_1
  fi
  if [ -n "${SORTIE_GIT_SSH:-}" ]; then export GIT_SSH_COMMAND="$SORTIE_GIT_SSH"; fi
  GIT_ALLOW_PROTOCOL=https:http:ssh:file git --no-pager -c core.hooksPath=/dev/null \
    -c core.fsmonitor=false -c gc.autoDetach=false -c protocol.file.allow=always \
    -c advice.detachedHead=false -c checkout.workers=0 "$@" </dev/null
)

# Runs git where LFS has to do with files: as it is wanted, and by no other filter.
filtered() {
  if [ "$want_lfs" = 1 ]; then
    remote -c filter.lfs.clean='git-lfs clean -- %f' -c filter.lfs.smudge='git-lfs smudge -- %f' \
      -c filter.lfs.process='git-lfs filter-process' -c filter.lfs.required=true "$@"
  else
    remote -c filter.lfs.clean= -c filter.lfs.smudge= -c filter.lfs.process= \
      -c filter.lfs.required=false "$@"
  fi
}

# Makes or fetches the mirror $1 of $2; $3 is 1 for the first time in a daemon's life, when what an
# earlier one left half done goes. $4 is the base, "" for the remote's default branch.
mirror() {
  if ! [ -e "$1/sortie-made" ]; then
    rm -rf "$1" "$1.new"
    mkdir -p "${1%/*}"
    g init -q --bare --template= "$1.new"
    # Workspaces borrow its objects: none is ever removed.
    g --git-dir="$1.new" config gc.pruneExpire never
    : >"$1.new/sortie-made"
    mv "$1.new" "$1"
  fi
  if [ "$3" = 1 ]; then
    # Files of agents lie below sortie-aside, and some of theirs are named so, too.
    (cd -P -- "$1" && find . -path ./sortie-aside -prune -o -name '*.lock' -type f -exec rm -f {} +)
    find "$1/objects" -name 'tmp_*' -type f -delete
  fi
  export GIT_DIR="$1"
  remote fetch -q --prune --no-write-fetch-head --no-recurse-submodules -- "$2" \
    '+refs/heads/*:refs/heads/*' '+refs/tags/*:refs/tags/*'
  base=$4
  [ -n "$base" ] || base=$(default_branch "$2")
  g rev-parse -q --verify "refs/heads/$base^{commit}" >/dev/null ||
    fail "the remote has no branch $base; push a first commit, or set repository.base"
  g symbolic-ref HEAD "refs/heads/$base"
  printf 'base %s\n' "$base"
}

# Prints the base at remote $1: branch $2 where it is there, its default branch for "".
remote_base() {
  if [ -z "$2" ]; then
    default_branch "$1"
    return
  fi
  found=$(remote ls-remote -- "$1" "refs/heads/$2")
  [ -n "$found" ] || fail "the remote has no branch $2; look at repository.base"
  printf '%s\n' "$2"
}

# Prints the default branch of remote $1.
default_branch() {
  head=$(remote ls-remote --symref -- "$1" HEAD)
  name=$(printf '%s\n' "$head" | sed -n 's#^ref: refs/heads/\(.*\)	HEAD$#\1#p')
  [ -n "$name" ] || fail 'the remote has no default branch; set repository.base'
  printf '%s\n' "$name"
}

# Notes in mirror $1 what stands checked out in workspace $2 as the work under key $3.
collect() {
  # Named so that no configuration of either side says which program serves it.
  g --git-dir="$1" fetch -q --no-tags --no-write-fetch-head --no-auto-maintenance \
    --no-recurse-submodules --upload-pack=git-upload-pack -- "$2" "+HEAD:refs/sortie/work/$3"
}

# Prints how work $2 in mirror $1 stands to branch $3 of base $4.
standing() {
  export GIT_DIR="$1"
  work=$(g rev-parse -q --verify "$2^{commit}") || fail 'there is no commit to look at'
  tip=$(g rev-parse -q --verify "refs/heads/$3^{commit}") || tip=
  printf 'head %s\ntip %s\n' "$work" "$tip"
  printf 'behind %s\n' "$(g rev-list --count "refs/heads/$4" --not "$work")"
  if [ -n "$tip" ]; then
    printf 'unmerged %s\n' "$(g rev-list --count "$tip" --not "$work")"
  fi
}

# Makes $path a clone that borrows from $mirror, with $branch checked out, or brings what it knows
# of the remote up to date; then prints how it stands.
checkout() {
  mirror=$1 path=$2 url=$3 branch=$4 base=$5 key=$6 run=$7 new=$8 want_submodules=$9
  shift 9
  want_lfs=$1 name=$2 email=$3 pushes=$4
  mkdir -p "$mirror/sortie-runs"
  printf '%s\n' "$run" >"$mirror/sortie-runs/$key"
  if [ "$want_lfs" = 1 ]; then download "$url" "$base" "$branch"; fi
  if [ "$new" = 1 ]; then
    fill "$path" "$branch"
    cd -P -- "$path"
    if g rev-parse -q --verify "refs/remotes/origin/$branch" >/dev/null; then
      start=refs/remotes/origin/$branch
    else
      start=refs/remotes/origin/$base
    fi
    filtered checkout -q -B "$branch" --no-track "$start"
    if [ "$branch" != "$base" ]; then g update-ref -d "refs/heads/$base"; fi
    if [ "$want_submodules" = 1 ]; then
      filtered submodule --quiet update --init --recursive
    fi
  else
    put_back "$mirror" "$path" "$key"
    cd -P -- "$path"
    if ! [ -d .git ] || [ -L .git ] || ! git_here rev-parse -q --verify HEAD >/dev/null 2>&1; then
      mend
    fi
    rm -f .git/index.lock .git/HEAD.lock .git/packed-refs.lock
    if no_filters; then
      GIT_ALLOW_PROTOCOL=file git_here -c gc.auto=0 -c maintenance.auto=false fetch -q --prune \
        --no-tags --no-write-fetch-head --no-recurse-submodules --upload-pack=git-upload-pack \
        -- "$mirror" '+refs/heads/*:refs/remotes/origin/*' 2>/dev/null ||
        echo 'stale 1'
      # Files of LFS are made by a filter of the workspace: the agent merges them itself.
      [ "$want_lfs" = 1 ] || go_on
    fi
  fi
  push_address
  collect "$mirror" "$path" "$key"
  standing "$mirror" "refs/sortie/work/$key" "$branch" "$base"
}

# Has a push to origin from the workspace in the current directory fail with a reason, or where
# $pushes is 1 no longer. Whoever means to push can name the address.
push_address() {
  if [ -L .git/config ]; then return; fi
  if [ "$pushes" = 1 ]; then
    git_here config --unset-all remote.origin.pushurl '^Sortie pushes' || :
  else
    git_here config --replace-all remote.origin.pushurl \
      'Sortie pushes this branch when you are done' || :
  fi 2>/dev/null
}

# Moves the workspace in the current directory on to what was pushed to its branch meanwhile, where
# that is all there is to do.
go_on() {
  tip=$(git_here rev-parse -q --verify "refs/remotes/origin/$branch^{commit}") || return 0
  git_here merge-base --is-ancestor HEAD "$tip" 2>/dev/null || return 0
  [ -z "$(git_here status --porcelain --ignore-submodules=dirty 2>&1)" ] || return 0
  if git_here read-tree -u -m HEAD "$tip" 2>/dev/null; then git_here update-ref HEAD "$tip"; fi
}

# Makes $1 a clone without files.
fill() {
  g clone -q --shared --no-checkout --template= -- "$mirror" "$1"
  g -C "$1" config remote.origin.url "$url"
  g -C "$1" config user.name "$name"
  g -C "$1" config user.email "$email"
  if [ "$want_lfs" = 1 ]; then
    command -v git-lfs >/dev/null || fail 'repository.lfs needs git-lfs, which is not installed'
    g -C "$1" config lfs.storage "$mirror/lfs"
    g -C "$1" config filter.lfs.clean 'git-lfs clean -- %f'
    g -C "$1" config filter.lfs.smudge 'git-lfs smudge -- %f'
    g -C "$1" config filter.lfs.process 'git-lfs filter-process'
    g -C "$1" config filter.lfs.required true
  fi
}

# Gives the workspace in the current directory a repository again that an agent has removed or
# broken: its files stay, and what was there is kept beside them.
mend() {
  spare="${mirror%/*}/mending-$key"
  rm -rf "$spare"
  fill "$spare"
  if [ -e .git ] || [ -L .git ]; then mv .git ".git.broken.$run"; fi
  mv "$spare/.git" .git
  rm -rf "$spare"
  work=$(g --git-dir="$mirror" rev-parse -q --verify "refs/sortie/work/$key") ||
    work=$(g --git-dir="$mirror" rev-parse "refs/heads/$base")
  g update-ref "refs/heads/$branch" "$work"
  g symbolic-ref HEAD "refs/heads/$branch"
  g read-tree "$work"
  mkdir -p .git/info
  printf '/.sortie/\n/.git.broken.*\n' >.git/info/exclude
  echo 'mended 1'
}

# Commits in mirror $1 what lies in workspace $2 and is in no commit of work $3, where that is
# anything; $4 is 1 where it may be. Files of more than $8 bytes are named and not committed.
leftovers() {
  mirror=$1 path=$2 key=$3 may=$4 name=$5 email=$6 message=$7 limit=$8 want_lfs=$9
  put_back "$mirror" "$path" "$key"
  collect "$mirror" "$path" "$key.now" 2>/dev/null || : # a broken repository has its files yet
  work=refs/sortie/work/$key tree='' was=''
  if now=$(g --git-dir="$mirror" rev-parse -q --verify "$work.now^{commit}"); then
    g --git-dir="$mirror" update-ref -d "$work.now"
  else
    now=$(g --git-dir="$mirror" rev-parse -q --verify "$work^{commit}") ||
      fail 'it is not known which commit the work began from'
    echo 'broken 1'
  fi
  before=$(g --git-dir="$mirror" rev-parse -q --verify "$work^{commit}") || before=
  cd -P -- "$path"
  index=$mirror/sortie-index-$key
  rm -f "$index" "$index.lock"
  export GIT_DIR="$mirror" GIT_WORK_TREE="$path" GIT_INDEX_FILE="$index"
  # The workspace's own index knows which files are as they were; the rest is read again.
  if [ -f .git/index ] && ! [ -L .git/index ]; then cp .git/index "$index"; fi
  g read-tree -m "$now" 2>/dev/null || { rm -f "$index"; g read-tree "$now"; }
  ours=':(exclude,top).sortie' broken=':(exclude,top).git.broken.*'
  # shellcheck disable=SC2016
  big=$(g ls-files -o -m --exclude-standard -z -- . "$ours" "$broken" | xargs -0 sh -c '
    for file; do [ -z "$file" ] || find "./$file" -prune -type f -size +"$0"c; done 2>/dev/null
    :' "$limit")
  if [ -n "$big" ] && [ "$want_lfs" = 1 ]; then # of what LFS has, only a pointer is committed
    big=$(printf '%s\n' "$big" | sed 's#^\./##' |
      git --no-pager -c core.quotePath=false check-attr --stdin filter |
      sed '/: filter: lfs$/d; s/: filter: [^:]*$//')
  fi
  [ -z "$big" ] || printf '%s\n' "$big" | sed 's#^\./##; s#^#large #'
  if [ -z "$big" ]; then
    filtered add -A -- . "$ours" "$broken" 2>/dev/null ||
      fail "git could not read the files: $(filtered add -A -- . "$ours" "$broken" 2>&1 | tail -n 1)"
    # A repository in the workspace is no file of it; submodules stay at their commits.
    {
      g ls-files -s -z | tr '\0' '\n' | sed -n 's/^160000 [^	]*	/0 0000000000000000000000000000000000000000	/p'
      g ls-tree -r -z "$now" | tr '\0' '\n' | sed -n '/^160000 /p'
    } | tr '\n' '\0' | git --no-pager update-index -z --index-info
    tree=$(g write-tree)
    was=$(g rev-parse "$now^{tree}")
    if [ "$tree" != "$was" ] && [ "$may" = 1 ]; then
      if [ -n "$before" ] && [ "$(g rev-parse "$before^{tree}")" = "$tree" ] &&
        [ "$(g rev-parse -q --verify "$before^")" = "$now" ]; then
        now=$before # it was committed before, and the workspace did not get to know
      else
        now=$(printf '%s\n' "$message" | GIT_AUTHOR_NAME=$name GIT_AUTHOR_EMAIL=$email \
          GIT_COMMITTER_NAME=$name GIT_COMMITTER_EMAIL=$email \
          git --no-pager -c i18n.commitEncoding=UTF-8 commit-tree -p "$now" "$tree")
      fi
      g update-ref "$work" "$now"
      unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
      if [ -d .git ] && ! [ -L .git ]; then
        rm -f .git/index.lock .git/HEAD.lock
        git_here update-ref HEAD "$now" 2>/dev/null && mv -f "$index" .git/index || :
      fi
    fi
  fi
  g --git-dir="$mirror" update-ref "$work" "$now"
  rm -f "$index"
  printf 'head %s\n' "$now"
  if [ "$tree" != "$was" ]; then # last, as it may be much
    g --git-dir="$mirror" diff-tree -r --name-only --no-renames "$was" "$tree" | sed 's/^/left /'
  fi
}

# Prints what the commits of work $2 in mirror $1 change against base $3, and those of more than $4
# bytes.
changes() {
  export GIT_DIR="$1"
  against=$(g merge-base "refs/heads/$3" "$2") || against=$(g hash-object -t tree /dev/null)
  printf 'tree %s\nbase %s\n' "$(g rev-parse "$2^{tree}")" "$(g rev-parse "refs/heads/$3")"
  printf 'commits %s\n' "$(g rev-list --count "$2" --not "refs/heads/$3")"
  printf 'behind %s\n' "$(g rev-list --count "refs/heads/$3" --not "$2")"
  g rev-list --objects "$2" --not --branches |
    git --no-pager cat-file --batch-check='%(objecttype) %(objectsize) %(rest)' --buffer |
    awk -v limit="$4" '$1 == "blob" && $2 > limit { print "large " $2 " " $3 }'
  # Not in a pipe, which would not tell that this failed: work must not look as if it were none.
  files=$(g diff-tree -r --numstat --no-renames --no-ext-diff --no-textconv "$against" "$2")
  [ -z "$files" ] || printf '%s\n' "$files" | sed 's/^/file /'
}

# Prints the difference of work $2 in mirror $1 to base $3, at most $4 bytes.
difference() {
  export GIT_DIR="$1"
  against=$(g merge-base "refs/heads/$3" "$2") || against=$(g hash-object -t tree /dev/null)
  g diff-tree -r -p --stat=0 --no-color --no-ext-diff --no-textconv "$against" "$2" 2>/dev/null |
    head -c "$4"
}

# Prints the paths of work $2 in mirror $1 that conflict with base $3, where git can tell.
conflicts() {
  g --git-dir="$1" merge-tree --write-tree --name-only --no-messages -z \
    "refs/heads/$3" "$2" 2>/dev/null | tr '\0' '\n' | sed 1d || :
}

# Writes the content of all objects that work $2 of mirror $1 adds to what the remote has. Where $4 is
# 1, files of LFS that it adds to base $3 follow under the ids of their pointers.
objects() {
  export GIT_DIR="$1"
  # Not in a pipe, which would not tell that this failed: no secret must be missed.
  added=$(g rev-list --objects --no-object-names "$2" --not --branches)
  [ -z "$added" ] || printf '%s\n' "$added" | git --no-pager cat-file --batch --buffer
  if [ "$4" = 1 ]; then
    pointers "$2" "refs/heads/$3" | while read -r blob oid; do
      file=$GIT_DIR/lfs/objects/$(printf %s "$oid" | sed 's#^\(..\)\(..\).*#\1/\2/&#')
      [ -f "$file" ] || continue
      printf '%s blob %s\n' "$blob" "$(wc -c <"$file")"
      cat "$file"
      echo
    done
  fi
}

# Prints the pointers of LFS that work $1 adds to commit $2: the id of the blob, and that of the file.
pointers() {
  g rev-list --objects --no-object-names "$1" --not "$2" |
    git --no-pager cat-file --batch-check --buffer |
    awk '$2 == "blob" && $3 < 1024 { print $1 }' |
    git --no-pager cat-file --batch --buffer |
    awk 'NF == 3 && $2 == "blob" { blob = $1 }
      before ~ /^version https:\/\/git-lfs/ && /^oid sha256:[0-9a-f]+$/ && length($0) == 75 {
        print blob, substr($0, 12)
      }
      { before = $0 }'
}

# Has in $mirror the files of LFS of branches $2 and $3 of remote $1, as far as they can be had: no
# workspace needs the network for them, and none has a copy of its own.
download() {
  case $1 in /*) server=file://$1 ;; *) server=$1 ;; esac
  command -v git-lfs >/dev/null || fail 'repository.lfs needs git-lfs, which is not installed'
  for name in "$2" "$3"; do
    g --git-dir="$mirror" rev-parse -q --verify "refs/heads/$name" >/dev/null || continue
    GIT_DIR=$mirror remote lfs fetch "$server" "refs/heads/$name" >/dev/null 2>&1 || :
  done
}

# Uploads the files of LFS that work $2 adds to base $3 to remote $1.
upload() {
  case $1 in /*) server=file://$1 ;; *) server=$1 ;; esac
  pointers "$2" "refs/heads/$3" | cut -d ' ' -f 2 | sort -u | xargs -n 500 echo | while read -r files; do
    # shellcheck disable=SC2086
    [ -z "$files" ] || remote lfs push --object-id "$server" $files >/dev/null
  done
}

# Prints the first of the files $3 and further that base $2 of mirror $1 has: its name on a line, and
# what it holds.
base_file() {
  mirror=$1 base=$2
  shift 2
  for file; do
    g --git-dir="$mirror" cat-file -e "refs/heads/$base:$file" 2>/dev/null || continue
    printf '%s\n' "$file"
    g --git-dir="$mirror" cat-file blob "refs/heads/$base:$file"
    return
  done
}

# Prints the path of object $3 in work $2 of mirror $1.
path_of() {
  export GIT_DIR="$1"
  g rev-list --objects "$2" --not --branches | sed -n "s/^$3 //p" | head -n 1
}

# Makes $path a clean clone with commit $commit checked out. Where files of LFS or submodules that
# the commit names cannot be had, though the remote can be reached, it prints which command failed
# and what that said.
clean() {
  mirror=$1 path=$2 url=$3 commit=$4 want_submodules=$5 want_lfs=$6 name=$7 email=$8
  rm -rf "$path"
  mkdir -p "${path%/*}"
  fill "$path"
  cd -P -- "$path"
  had 'git checkout' checkout -q --detach "$commit" || return 0
  if [ "$want_submodules" = 1 ]; then
    had 'git submodule update --init --recursive' submodule --quiet update --init --recursive || :
  fi
}

# Runs git for command $1, and prints what is wrong where that lies with the commit.
had() {
  shown=$1
  shift
  said=$(filtered "$@" 2>&1 >/dev/null) && return 0
  case $want_submodules$want_lfs$said in 00* | *'No space left'*) fail "$said" ;; esac
  remote ls-remote -- "$url" HEAD >/dev/null || exit
  printf 'failed %s\n%s\n' "$shown" "$said"
  return 1
}

# Pushes commit $3 from mirror $1 to branch $4 of $2; $5 is the tip that the branch had when the
# work began, from which alone it may be rewritten. $6 is 1 where LFS is used; $7 is the base.
push() {
  export GIT_DIR="$1"
  # Also where the commit is there already: whoever pushed it may have done so without LFS.
  if [ "$6" = 1 ]; then upload "$2" "$3" "$7"; fi
  tip=$(remote ls-remote -- "$2" "refs/heads/$4" | sed -n '1s/	.*//p')
  if [ "$tip" = "$3" ]; then
    echo 'pushed 0'
    return
  fi
  if [ -n "$tip" ] && [ "$tip" != "$5" ] &&
    { ! g cat-file -e "$tip^{commit}" 2>/dev/null || ! g merge-base --is-ancestor "$tip" "$3"; }; then
    printf 'moved %s\n' "$tip"
    return
  fi
  remote -c push.followTags=false -c push.gpgSign=false -c push.recurseSubmodules=no push -q \
    --no-verify "--force-with-lease=refs/heads/$4:$tip" -- "$2" "$3:refs/heads/$4"
  g update-ref "refs/heads/$4" "$3"
  echo 'pushed 1'
}

# Keeps in mirror $1 all work of workspace $2 with key $3 that the remote does not have: what is not
# committed too. Prints "kept REF" for each.
rescue() {
  mirror=$1 path=$2 key=$3 limit=$6 want_lfs=$7
  run=$(cat "$mirror/sortie-runs/$key" 2>/dev/null) || run=unknown
  place=refs/sortie/rescue/$key/$run
  found=$(leftovers "$mirror" "$path" "$key" 1 "$4" "$5" "Work that was not committed" "$limit" "$want_lfs")
  printf '%s\n' "$found" | sed -n '/^large /p'
  head=$(printf '%s\n' "$found" | sed -n 's/^head //p')
  keep "$place" "$head"
  # Whatever else stands in the repository: branches, and what was stashed.
  if [ -d "$path/.git" ]; then
    # Of one that is broken, what can be had; nothing of one that is not may be missing.
    case $found in *'broken 1'*) find_refs 2>/dev/null || : ;; *) find_refs ;; esac
    g --git-dir="$mirror" for-each-ref --format='%(objectname) %(refname)' "refs/sortie/found/$key/" |
      while read -r commit ref; do
        branch=${ref#refs/sortie/found/"$key"/}
        keep "$place.$(printf %s "${branch#heads/}" | tr -c 'A-Za-z0-9_-' '_')" "$commit"
        g --git-dir="$mirror" update-ref -d "$ref"
      done
  fi
  g --git-dir="$mirror" update-ref -d "refs/sortie/work/$key"
  rm -f "$mirror/sortie-runs/$key"
}

# Brings the branches of workspace $path, and what was stashed there last, to refs/sortie/found.
find_refs() {
  set -- "+refs/heads/*:refs/sortie/found/$key/heads/*"
  stash=$(g ls-remote --upload-pack=git-upload-pack -- "$path" refs/stash) || return
  [ -z "$stash" ] || set -- "$@" "+refs/stash:refs/sortie/found/$key/stash"
  g --git-dir="$mirror" fetch -q --prune --no-tags --no-write-fetch-head --no-auto-maintenance \
    --no-recurse-submodules --upload-pack=git-upload-pack -- "$path" "$@"
}

# Keeps commit $2 under $1, or a number behind that where something else is kept there, unless the
# remote has it, or it is kept already.
keep() {
  new=$(g --git-dir="$mirror" rev-list --max-count=1 "$2" --not --branches --glob="$place*")
  [ -n "$new" ] || return 0
  as=$1 number=1
  while g --git-dir="$mirror" show-ref -q --verify "$as"; do
    number=$((number + 1)) as=$1.$number
  done
  # A tag, as it knows when it was made.
  tag=$(printf 'object %s\ntype commit\ntag rescue\ntagger Sortie <sortie@localhost> %s +0000\n\n%s\n' \
    "$2" "$(date +%s)" 'Work that was nowhere else' | git --git-dir="$mirror" mktag)
  g --git-dir="$mirror" update-ref "$as" "$tag"
  printf 'kept %s\n' "$as"
}

# Forgets what was rescued in mirror $1 before $2, in Unix seconds.
forget() {
  [ -e "$1/sortie-made" ] || return 0
  export GIT_DIR="$1"
  g for-each-ref --format='%(creatordate:unix) %(refname)' refs/sortie/rescue/ |
    while read -r at ref; do
      if [ "$at" -lt "$2" ]; then g update-ref -d "$ref"; printf 'forgot %s\n' "$ref"; fi
    done
}

# Prints what is rescued in mirror $1: commit, date, and place.
rescued() {
  [ -e "$1/sortie-made" ] || return 0
  g --git-dir="$1" for-each-ref --sort=-creatordate \
    --format='%(*objectname) %(creatordate:unix) %(refname) %(*contents:subject)' \
    refs/sortie/rescue/
}

# Shows the commits of rescued work $2 in mirror $1 with what they change.
show_rescued() {
  g --git-dir="$1" log -p --no-color --no-ext-diff --no-textconv "$2^{commit}" --not --branches
}

# Writes the files of LFS that rescued work $2 in mirror $1 adds to what the remote has, as an archive.
bundle_files() {
  export GIT_DIR="$1"
  list=$(pointers "$2" HEAD | cut -d ' ' -f 2 | sort -u | sed 's#^\(..\)\(..\)#objects/\1/\2/&#')
  cd "$1/lfs" 2>/dev/null || cd "$1"
  printf '%s\n' "$list" | while read -r file; do [ ! -f "$file" ] || printf '%s\n' "$file"; done |
    tar -cf - -T -
}

# Writes a bundle of rescued work $2 in mirror $1, without what branches of the remote have where $3
# is 1.
bundle() {
  if [ "$3" = 1 ]; then
    g --git-dir="$1" bundle create -q - "$2" --not --branches
  else
    g --git-dir="$1" bundle create -q - "$2"
  fi
}

task=$1
shift
"$task" "$@"
