# fish completion of ordered-dispatcher: write it to ~/.config/fish/completions/ordered-dispatcher.fish
function __ordered_dispatcher_complete
    set -l words (commandline -opc) (commandline -ct)
    ordered-dispatcher complete -- $words[2..-1] 2>/dev/null
end
complete -c ordered-dispatcher -f -a '(__ordered_dispatcher_complete)'
complete -c ordered-dispatcher -s c -l config -r -F
complete -c ordered-dispatcher -l key-file -r -F
