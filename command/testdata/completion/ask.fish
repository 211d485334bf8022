# Writes what fish offers after "ordered-dispatcher dead-letter " into $FOUND. fish finds $SCRIPT by its name.
set fish_complete_path (dirname $SCRIPT)
complete -C 'ordered-dispatcher dead-letter ' | string split -f 1 \t >$FOUND
