#!/usr/bin/env bash
# curl: a token by form fields and by Basic, a walk in a shell loop, a wrong secret. Reads JSON with jq.
set -euo pipefail

PAGES_LIMIT=50 # far above what a walk takes here: one that reads on is going in circles

report() {
  jq --null-input --compact-output --arg claim "$1" --arg outcome "$2" \
    '{client: "curl", version: "the system'\''s", claim: $claim, outcome: $outcome}'
}

fail() {
  echo "$1" >&2
  exit 1
}

token_by_form() {
  curl --silent --show-error --fail "$BATCHSCAN_URL/$1/auth" -d grant_type=client_credentials \
    -d "client_id=$BATCHSCAN_CLIENT_ID" -d "client_secret=$2"
}

token_by_basic() {
  curl --silent --show-error --fail "$BATCHSCAN_URL/v2/auth" -u "$BATCHSCAN_CLIENT_ID:$1" \
    -d grant_type=client_credentials
}

get() {
  curl --silent --show-error --fail --get -H "Authorization: Bearer $TOKEN" "$@"
}

for answer in "$(token_by_form v2 "$BATCHSCAN_CLIENT_SECRET")" "$(token_by_basic "$BATCHSCAN_CLIENT_SECRET")"; do
  jq --exit-status '.token_type == "bearer" and .expires_in == 3600' <<<"$answer" >/dev/null || fail "no token: $answer"
  TOKEN=$(jq --raw-output .access_token <<<"$answer")
  get --output /dev/null "$BATCHSCAN_URL/v2/batches"
done
report token "bearer, for 3600 s; by form fields and by \`-u\`"

ids='' next='' pages=0
while page=$(get "$BATCHSCAN_URL/v2/batches" ${next:+--data-urlencode "next_token=$next"}); do
  ids+=$(jq --raw-output '.data[].batch_id' <<<"$page")$'\n'
  pages=$((pages + 1))
  next=$(jq --raw-output '.next_token // empty' <<<"$page")
  [ -n "$next" ] || break
  [ "$pages" -lt "$PAGES_LIMIT" ] || fail "no end after $pages pages"
done
[ "$pages" -gt 1 ] && [ -z "$next" ] || fail "the walk broke off after $pages pages"
expected=$(get "$BATCHSCAN_URL/v1/batches" | jq --raw-output '.[].batch_id')
[ "${ids%$'\n'}" = "$expected" ] || fail "v2 does not bring what v1 brings"
report paging "all $(wc -l <<<"$expected") batches in order, in $pages pages"

for ask in "token_by_form v2" token_by_basic; do
  status=0
  answer=$($ask not-the-secret-of-anyone 2>/dev/null) || status=$?
  [ "$status" = 22 ] && [ -z "$answer" ] || fail "a wrong secret: exit status $status, answer $answer"
done
report "wrong secret" "exits with 22 under \`--fail\`, prints nothing"
