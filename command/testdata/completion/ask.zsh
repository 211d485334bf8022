# Writes what zsh offers after "ordered-dispatcher dead-letter " into $FOUND. zsh finds $SCRIPT by its name.
if [[ ! -o interactive ]]; then
	# zsh completes only at a terminal, so another zsh has one, and reads this file again.
	zmodload zsh/zpty
	zpty terminal zsh -f -i
	zpty -w terminal "source ${(q)0:A}"
	while zpty -r terminal line; do :; done
	exit
fi
fpath=(${SCRIPT:h} $fpath)
autoload -Uz compinit
compinit -u -D
compadd() {
	local -a words
	builtin compadd -O words "$@"
	print -rl -- $words >>$FOUND
	builtin compadd "$@"
}
zle-line-init() {
	BUFFER="ordered-dispatcher dead-letter "
	CURSOR=$#BUFFER
	zle complete-word
	exit
}
zle -N zle-line-init
