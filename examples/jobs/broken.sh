# Fails every time, until its attempts are used up.
echo "feed source $1: cannot parse line 1" >&2
exit 1
