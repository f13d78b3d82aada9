if [ ! -L "$path" ] && cd -P -- "$root"; then
  top=${PWD%/}
  if cd -P -- "$path" && [ "$path" -ef . ] && [ ! -L "$path" ]; then
    case $PWD in "$top"/?*) yes inside; leave ;; esac
  fi
fi
yes outside
