# SPDX-License-Identifier: GPL-2.0-or-later
#
# The tool itself knows what may come next.
function __umacct_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l replies (umacct complete -- $words[2..-1] 2>/dev/null)
    switch "$replies[1]"
        case ':file'
            __fish_complete_path (commandline -ct)
        case ':command *'
            set -l before (string replace ':command ' '' -- $replies[1])
            complete -C (string join ' ' -- (string escape -- $words[(math $before + 2)..-2]) $words[-1])
        case '*'
            printf '%s\n' $replies
    end
end
complete -c umacct -f -a '(__umacct_complete)'
