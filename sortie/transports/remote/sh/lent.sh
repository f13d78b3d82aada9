# Begins a script in a process below a shell that answers questions, as in a login of its own.
exec 2>&9 9>&-
[ -n "$login_locale" ] && LC_ALL=$login_locale || unset LC_ALL
