# The command of a container with a terminal, in place of the agent's program until that may start.
# $1 is written once the terminal does not show what is typed; then a line "go" has to come. The rest is the program.
stty -echo || exit 69
printf '%s\n' "$1"
read -r word || exit 69
[ "$word" = go ] || exit 69
stty echo
shift
exec "$@"
