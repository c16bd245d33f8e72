# Ends every process of this container but the first one, the main program, the main program's children (the bridge
# to the proxies is one), and itself: SIGTERM, $1 seconds, SIGKILL. Status 0: nothing else is left.
# Only words that the shell has built in, and sleep: where no process can be made any more, it fails and says so.

# Sets state, parent and start of process $1. A name may hold any character, so what counts begins after the last ")".
look() {
  text=
  while IFS= read -r line || [ -n "$line" ]; do text="$text $line"; done 2>/dev/null <"/proc/$1/stat" || return 1
  [ -n "$text" ] || return 1
  set -f
  # shellcheck disable=SC2086  # one word a field
  set -- ${text##*)}
  set +f
  state=$1 parent=$2 start=${20}
}

# The main program is the oldest child of the first process; orphans become its children later.
main=0 oldest=
for path in /proc/[0-9]*; do
  look "${path#/proc/}" || continue
  [ "$parent" = 1 ] || continue
  if [ -z "$oldest" ] || [ "$start" -lt "$oldest" ]; then main=${path#/proc/} oldest=$start; fi
done
[ "$main" != 0 ] || { echo "there is no main program"; exit 1; }

# Sends signal $1 to all that has to go; sets left to how many there are.
signal() {
  left=0
  for path in /proc/[0-9]*; do
    pid=${path#/proc/}
    case $pid in 1 | "$main" | $$) continue ;; esac
    look "$pid" || continue
    [ "$state" != Z ] && [ "$parent" != "$main" ] || continue
    left=$((left + 1))
    kill -s "$1" "$pid" 2>/dev/null
  done
}

signal TERM
polls=$(($1 * 10))
while [ "$left" -gt 0 ] && [ "$polls" -gt 0 ]; do
  sleep 0.1 || exit 1
  polls=$((polls - 1))
  signal 0
done
polls=30
while [ "$left" -gt 0 ] && [ "$polls" -gt 0 ]; do
  signal KILL
  sleep 0.1 || exit 1
  polls=$((polls - 1))
  signal 0
done
[ "$left" -eq 0 ] || { echo "$left processes are left"; exit 1; }
