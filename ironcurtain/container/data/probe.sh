# Prints what this container is like: on each line a word, a blank, and a value. Run before any agent is.
# Only words that the shell has built in, and cat; unshare and socat where they exist.

while IFS=: read -r name value; do
  case $name in Uid | Gid | Groups | Cap* | NoNewPrivs | Seccomp) printf 'status %s %s\n' "$name" "$value" ;; esac
  [ "$name" != Seccomp ] || break
done </proc/self/status

# Shells read a byte at a time, which takes milliseconds here: so the lines are words.
(
  IFS='
'
  set -f
  printf 'mount %s\n' $(cat /proc/self/mountinfo)
)

while read -r line; do
  case $line in *:*) printf 'interface %s\n' "${line%%:*}" ;; esac
done </proc/net/dev
while read -r interface _; do
  [ "$interface" = Iface ] || printf 'route %s\n' "$interface"
done </proc/net/route
if [ -e /proc/net/ipv6_route ]; then
  while read -r line; do printf 'route %s\n' "${line##* }"; done </proc/net/ipv6_route
fi

for path in /dev/* /dev/*/*; do
  [ -L "$path" ] || { [ ! -b "$path" ] && [ ! -c "$path" ]; } || printf 'device %s\n' "$path"
done
for path in "$1"/* /run/*.sock /run/*/*.sock /var/run/*.sock; do
  [ ! -S "$path" ] || printf 'socket %s\n' "$path"
done

# A file system that is only closed to this user answers otherwise.
for directory in / /etc /usr /var/tmp; do
  [ -d "$directory" ] || continue
  if message=$( { : >"$directory/.ironcurtain-probe"; } 2>&1); then message=written; fi
  printf 'write %s %s\n' "$directory" "$message"
done

if ! command -v unshare >/dev/null; then answer=unknown
elif unshare -U true 2>/dev/null; then answer=allowed
else answer=refused
fi
printf 'namespaces %s\n' "$answer"

# Some Engines show sockets of their machine, but nothing can connect to them.
if ! command -v socat >/dev/null; then answer=unknown
elif [ ! -S "$1/mitm-proxy.sock" ]; then answer=no
elif socat -u OPEN:/dev/null "UNIX-CONNECT:$1/mitm-proxy.sock" 2>/dev/null; then answer=yes
else answer=no
fi
printf 'connection %s\n' "$answer"

# The first file of each pair is cgroup version 2.
limit() {
  for path in "$2" "$3"; do
    [ -r "$path" ] || continue
    read -r value <"$path"
    printf 'limit %s %s\n' "$1" "$value"
    return
  done
}
limit memory /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes
limit pids /sys/fs/cgroup/pids.max /sys/fs/cgroup/pids/pids.max

echo end
