if [ ! -L "$path" ] && cd -P -- "$root"; then
  top=${PWD%/}
  if cd -P -- "$path" && [ "$path" -ef . ] && [ ! -L "$path" ]; then
    case $PWD in "$top"/?*) whole yes inside ;; esac
  fi
fi
whole yes outside
