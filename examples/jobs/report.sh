# Slow work in STEPS parts of a third of a second, reporting progress and a result on descriptor 3.
steps=$1
for step in $(seq "$steps"); do
    sleep 0.33
    echo "part $step of $steps"
    echo "{\"progress\":{\"done\":$step,\"of\":$steps}}" >&3
done
echo "{\"result\":{\"parts\":$steps}}" >&3
