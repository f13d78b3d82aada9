# Tells whether a path is a directory, no link, whose real path lies in the real root.
is_inside() {
  [ ! -L "$path" ] && cd -P -- "$root" || return 1
  top=${PWD%/}
  cd -P -- "$path" && [ "$path" -ef . ] && [ ! -L "$path" ] || return 1
  case $PWD in "$top"/?*) ;; *) return 1 ;; esac
}
