# bash completion of ordered-dispatcher: source <(ordered-dispatcher completion bash)
_ordered_dispatcher() {
	mapfile -t COMPREPLY < <(ordered-dispatcher complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1)
}
complete -o default -F _ordered_dispatcher ordered-dispatcher
