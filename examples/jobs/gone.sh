# Knows that trying again is of no use and says so: failed at once. An outcome counts if the script
# itself ends well.
echo "feed source $1: 410 gone" >&2
echo '{"outcome":"fatal","reason":"410 gone: the source has moved away"}' >&3
