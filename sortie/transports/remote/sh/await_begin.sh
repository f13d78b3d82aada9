# Waits for the word of the supervisor; without it nothing begins.
exec 4<"$place/begin" 8>&-
IFS=' ' read -r line namespace_init <&4 && [ "$line" = go ] || exit
