# Quick work: a page is fetched and stored, or would be.
echo "page $1: 200 OK, attempt $PAWL_ATTEMPT"
