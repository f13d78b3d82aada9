# Moves to a directory without following a link, and tells what stands in the way.

A_LINK='it is a link, or a part of its path is one'
NO_DIRECTORY='it, or a part of its path, is no directory (or is a link)'
REPLACED='a part of its path was replaced while it was used'

exists() { [ -e "$1" ] || [ -L "$1" ]; }
is_directory() { [ -d "$1" ] && [ ! -L "$1" ]; }

# Goes to a directory that is no link itself; the path that leads to it may hold links.
go_to() {
  [ -L "$1" ] && no "$A_LINK"
  exists "$1" || return 1
  [ -d "$1" ] || no "$NO_DIRECTORY"
  cd -P -- "$1" || no 'Permission denied'
  # Between the look and the step it may have become a link.
  [ ! -L "$1" ] && [ "$1" -ef . ] || no "$REPLACED"
}

# Goes to a directory right below this one.
go_below() {
  [ -L "./$1" ] && no "$NO_DIRECTORY"
  exists "./$1" || return 1
  [ -d "./$1" ] || no "$NO_DIRECTORY"
  above=${PWD%/}
  cd -P -- "./$1" || no 'Permission denied'
  [ "$PWD" = "$above/$1" ] || no "$REPLACED"
}

# Goes to a root, which has to be ours.
go_to_root() {
  go_to "$1" || return 1
  [ -O . ] || no "the directory $1 belongs to another user; choose a root of your own"
}

is_expanded() {
  case $1 in
    /*) ;;
    *) no 'there is no such home directory on the host' ;;
  esac
}
