#!/bin/sh
# Entry point of the image: makes missing tokens and runs `millrace "$@"` on all interfaces. Set a
# variable such as MILLRACE_QUEUE_LISTEN to choose another address. The log has the files of new
# tokens, never the tokens. `tokens` prints them, for `docker exec`. `init` makes them and exits.
# `health` exits with 0 if what the container runs is up.
set -eu
umask 077

data=${MILLRACE_DATA_DIR:-/data}
export MILLRACE_DATA_DIR="$data"
mkdir -p "$data"
export MILLRACE_QUEUE_DATA="${MILLRACE_QUEUE_DATA:-$data}"
export MILLRACE_DB_DATA="${MILLRACE_DB_DATA:-$data/db}"
export MILLRACE_LISTEN="${MILLRACE_LISTEN:-0.0.0.0:8765}"
export MILLRACE_QUEUE_LISTEN="${MILLRACE_QUEUE_LISTEN:-0.0.0.0:8081}"
export MILLRACE_QUEUE_GRPC="${MILLRACE_QUEUE_GRPC:-0.0.0.0:8082}"
export MILLRACE_QUEUE_METRICS_LISTEN="${MILLRACE_QUEUE_METRICS_LISTEN:-0.0.0.0:9464}"
export MILLRACE_DB_GRPC="${MILLRACE_DB_GRPC:-0.0.0.0:5433}"
export MILLRACE_DB_HTTP="${MILLRACE_DB_HTTP:-0.0.0.0:8080}"

# store FILE TEXT TITLE: writes a new secret, and says where it is.
store() {
  mkdir -p "$(dirname "$1")"
  printf '%s\n' "$2" >"$1.new"
  mv "$1.new" "$1"
  echo "millrace: new $3 in $1; show it with: sh /opt/millrace/entrypoint.sh tokens" >&2
}

daemon_token() {
  if [ -z "${MILLRACE_TOKEN:-}" ] && [ ! -e "$data/daemon.token" ]; then
    token=$(millrace daemon token generate --data "$data" 2>/dev/null)
    store "$data/daemon.token" "$token" 'token of the daemon'
  fi
}

queue_token() {
  tokens=${MILLRACE_QUEUE_TOKENS_FILE:-$data/queue-tokens.yaml}
  if [ ! -e "$tokens" ]; then
    token=$(millrace queue token new --principal owner --grant '*:admin' --tokens-file "$tokens" \
      --json | node -p 'JSON.parse(require("fs").readFileSync(0)).token')
    store "$(dirname "$tokens")/queue.token" "$token" 'token of the queue'
  fi
}

database_key() {
  file=$MILLRACE_DB_DATA/db.key
  if [ -z "${MILLRACE_DB_KEYS_FILE:-}" ] && [ ! -e "$file" ]; then
    secret=$(node -p 'require("crypto").randomBytes(32).toString("hex")')
    store "$file" "owner.$secret" 'key of the database'
  fi
}

# show FILE TITLE: prints a stored secret.
show() {
  if [ -r "$1" ]; then echo "$2: $(cat "$1")"; fi
}

tokens() {
  show "$data/daemon.token" daemon
  show "$(dirname "${MILLRACE_QUEUE_TOKENS_FILE:-$data/queue-tokens.yaml}")/queue.token" queue
  show "$MILLRACE_DB_DATA/db.key" database
}

# answers ADDRESS PATH: whether the server at this port says that it is well.
answers() {
  exec node -e 'fetch(process.argv[1]).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))' \
    "http://127.0.0.1:${1##*:}$2"
}

# health WORDS: the words after the image, by default those of the first process.
health() {
  [ $# -gt 0 ] || set -- "$(tr '\0' ' ' </proc/1/cmdline)"
  case "$* " in
    *'queue serve '*) answers "$MILLRACE_QUEUE_LISTEN" /readyz ;;
    *'db serve '*) answers "$MILLRACE_DB_HTTP" /readyz ;;
    *'daemon serve '*) answers "$MILLRACE_LISTEN" /healthz ;;
    *) exec millrace status ;;
  esac
}

[ $# -gt 0 ] || set -- up
case "$1 ${2:-}" in
  'up '*)
    daemon_token
    queue_token
    database_key
    ;;
  'init '*)
    daemon_token
    queue_token
    database_key
    exit 0
    ;;
  'tokens '*)
    tokens
    exit 0
    ;;
  'health '*)
    shift
    health "$@"
    ;;
  'daemon serve') daemon_token ;;
  'queue serve')
    queue_token
    export MILLRACE_QUEUE_TOKENS_FILE="$tokens"
    ;;
  'db serve') database_key ;;
esac
exec millrace "$@"
