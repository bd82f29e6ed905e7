# A feed that is fresh, fails twice before it works, is throttled once, or has not changed.
case "$1" in
error)
    if [ "$PAWL_ATTEMPT" -lt 3 ]; then
        echo "feed $2: connection reset by peer" >&2
        exit 1
    fi
    ;;
throttled)
    # A transient failure (75) costs no attempt; the fence counts every claim.
    if [ "$PAWL_FENCE" -lt 2 ]; then
        echo "feed $2: 503, try later" >&2
        exit 75
    fi
    ;;
unchanged)
    echo "feed $2: not changed since the last visit"
    exit 100
    ;;
esac
echo "feed $2: stored"
