if reach && exists "./$last"; then
  is_directory "./$last" && no 'it is a directory'
  said=$(rm -f -- "./$last" 2>&1) || because "$said"
fi
whole yes removed
