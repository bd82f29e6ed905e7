/* pawl completion: scripts for the shells. They only pass the words on to `pawl __complete`
 * (complete.c), so a script never differs from the tables of the pawl that is installed. */
#include "cli.h"

static const struct opt opts[] = {OPT_END};
static const struct example examples[] = {
    {"pawl completion bash > pawl.bash", "for bash: source it, or put it where completions are"},
    {"pawl completion fish > pawl.fish", "for fish: ~/.config/fish/completions/pawl.fish"},
    {"pawl completion zsh > _pawl", "for zsh: into a folder of $fpath, before compinit"},
    EXAMPLE_END,
};

static const char bash_script[] =
    "# bash completion for pawl; made by 'pawl completion bash'.\n"
    "_pawl() {\n"
    "    local words=() word line cur cut i\n"
    "    # bash breaks words at '=' and ':'; pawl wants them whole.\n"
    "    for ((i = 1; i <= COMP_CWORD; i++)); do\n"
    "        word=${COMP_WORDS[i]}\n"
    "        if ((${#words[@]})) && [[ $word == [=:] || ${cut-} == [=:] ]]; then\n"
    "            words[${#words[@]}-1]+=$word\n"
    "        else\n"
    "            words+=(\"$word\")\n"
    "        fi\n"
    "        cut=$word\n"
    "    done\n"
    "    cur=${words[${#words[@]}-1]-}\n"
    "    cut=${cur%\"${cur##*[=:]}\"}\n"
    "    COMPREPLY=()\n"
    "    while IFS= read -r line; do\n"
    "        case $line in\n"
    "        :files)\n"
    "            compopt -o filenames 2>/dev/null\n"
    "            while IFS= read -r word; do COMPREPLY+=(\"$word\"); done < <(compgen -f -- "
    "\"${cur#\"$cut\"}\")\n"
    "            ;;\n"
    "        :folders)\n"
    "            compopt -o filenames 2>/dev/null\n"
    "            while IFS= read -r word; do COMPREPLY+=(\"$word\"); done < <(compgen -d -- "
    "\"${cur#\"$cut\"}\")\n"
    "            ;;\n"
    "        :commands)\n"
    "            while IFS= read -r word; do COMPREPLY+=(\"$word\"); done < <(compgen -c -- "
    "\"$cur\")\n"
    "            ;;\n"
    "        *)\n"
    "            word=${line%%$'\\t'*}\n"
    "            printf -v word %q \"${word#\"$cut\"}\"\n"
    "            COMPREPLY+=(\"$word\")\n"
    "            ;;\n"
    "        esac\n"
    "    done < <(pawl __complete \"${words[@]}\" 2>/dev/null)\n"
    "}\n"
    "complete -F _pawl pawl\n";

static const char zsh_script[] =
    "#compdef pawl\n"
    "# zsh completion for pawl; made by 'pawl completion zsh'.\n"
    "_pawl() {\n"
    "    local line\n"
    "    local -a found shown\n"
    "    for line in \"${(@f)$(command pawl __complete \"${(@Q)words[2,CURRENT]}\" "
    "2>/dev/null)}\"; do\n"
    "        case $line in\n"
    "        '') ;;\n"
    "        :files) _files ;;\n"
    "        :folders) _files -/ ;;\n"
    "        :commands) _command_names -e ;;\n"
    "        *)\n"
    "            found+=(\"${line%%$'\\t'*}\")\n"
    "            shown+=(\"${line/$'\\t'/  -- }\")\n"
    "            ;;\n"
    "        esac\n"
    "    done\n"
    "    ((${#found})) && compadd -V pawl -l -d shown -a found\n"
    "}\n"
    "if [[ $funcstack[1] == _pawl ]]; then\n"
    "    _pawl \"$@\"\n"
    "else\n"
    "    compdef _pawl pawl\n"
    "fi\n";

static const char fish_script[] =
    "# fish completion for pawl; made by 'pawl completion fish'.\n"
    "function __pawl_complete\n"
    "    set -l words (commandline -opc)\n"
    "    set -e words[1]\n"
    "    set -l typed (commandline -ct)\n"
    "    for line in (command pawl __complete $words \"$typed\" 2>/dev/null)\n"
    "        switch $line\n"
    "            case ':files'\n"
    "                __fish_complete_path \"$typed\"\n"
    "            case ':folders'\n"
    "                __fish_complete_directories \"$typed\"\n"
    "            case ':commands'\n"
    "                complete -C \"$typed\"\n"
    "            case '*'\n"
    "                printf '%s\\n' $line\n"
    "        end\n"
    "    end\n"
    "end\n"
    "complete -c pawl -f -k -a '(__pawl_complete)'\n";

static int run(struct cli *c, struct pawl_err *err)
{
    static const struct {
        const char *shell, *script;
    } scripts[] = {{"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}};
    for (size_t i = 0; i < sizeof(scripts) / sizeof(*scripts); i++)
        if (!strcmp(c->args.pos[0], scripts[i].shell)) {
            out_put(&c->out, sv_of(scripts[i].script));
            return 0;
        }
    err_set(err, PAWL_EUSAGE, "no completion for '%s'", c->args.pos[0]);
    return err_hint(err, "there is one for bash, zsh and fish");
}

const struct cmd cmd_completion = {
    .name = "completion",
    .usage = "bash|zsh|fish",
    .about = "Prints a script that makes the shell complete commands, options, their values, and "
             "what is in the store: job ids, queues, kinds, hosts and workers. A package or 'make "
             "install' puts it where the shell finds it.",
    .opts = opts,
    .examples = examples,
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
