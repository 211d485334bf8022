# Writes what bash offers after "ordered-dispatcher dead-letter " into $FOUND. $SCRIPT is what "completion bash" prints.
source "$SCRIPT"
COMP_WORDS=(ordered-dispatcher dead-letter '') COMP_CWORD=2
_ordered_dispatcher
printf '%s\n' "${COMPREPLY[@]}" >"$FOUND"
