# Removes the directory of a socket.
rm -rf -- "$1"
