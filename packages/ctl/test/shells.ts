import { execFile, spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

export type Complete = (line: string) => Promise<string[]>;

/** What a shell offers at the end of a line, once it has read the completion script. */
export const shells: Readonly<Record<string, (script: string, cwd: string) => Promise<Complete>>> =
  {
    bash: async (script, cwd) => {
      await writeFile(join(cwd, 'ctl.bash'), script);
      await writeFile(join(cwd, 'ask.bash'), BASH_ASK);
      return (line) => complete('bash', ['--norc', 'ask.bash', line], cwd);
    },
    zsh: async (script, cwd) => {
      await writeFile(join(cwd, 'ctl.zsh'), script);
      await writeFile(join(cwd, 'setup.zsh'), ZSH_SETUP);
      await writeFile(join(cwd, 'ask.zsh'), ZSH_ASK);
      return (line) => complete('zsh', ['-f', 'ask.zsh', line], cwd);
    },
    fish: async (script, cwd) => {
      await writeFile(join(cwd, 'ctl.fish'), script);
      const program = 'source ctl.fish; complete --do-complete $argv[1]';
      return async (line) => {
        const offers = await complete('fish', ['--no-config', '-c', program, line], cwd);
        return inOrder(offers.map((offer) => offer.split('\t')[0] ?? ''));
      };
    },
  };

export function isInstalled(shell: string): boolean {
  return spawnSync(shell, ['--version']).status === 0;
}

async function complete(shell: string, args: string[], cwd: string): Promise<string[]> {
  const env = { PATH: process.env['PATH'], HOME: cwd, TERM: 'xterm', LANG: 'C.UTF-8' };
  const { stdout, stderr } = await run(shell, args, { cwd, env, timeout: 120_000 });
  if (stderr !== '') throw new Error(`${shell} complained: ${stderr}`);
  const lines = stdout.split('\n').map((line) => line.trim());
  return inOrder(new Set(lines.filter((line) => line !== '')));
}

function inOrder(words: Iterable<string>): string[] {
  return [...words].toSorted((a, b) => (a < b ? -1 : 1));
}

/** Splits the line as readline does, at blanks and at `=`, and calls the function readline would. */
const BASH_ASK = `
source ./ctl.bash
line=$1
COMP_WORDS=()
for word in \${line//=/ = }; do COMP_WORDS+=("$word"); done
if [[ $line == *' ' ]]; then COMP_WORDS+=(''); fi
COMP_CWORD=$((\${#COMP_WORDS[@]} - 1))
COMPREPLY=()
COMP_LINE=$line
COMP_POINT=\${#line}
_ctl
printf '%s\\n' "\${COMPREPLY[@]}"
`;

/** zsh completes only at a prompt, so a second zsh on a pseudo-terminal is asked. */
const ZSH_ASK = `
zmodload zsh/zpty
zpty -b asked zsh -f -i
zpty -w asked 'source ./setup.zsh'
zpty -r asked answer $'*ready\\r\\n' || exit 1
zpty -w -n asked "$1"$'\\t'
zpty -r asked answer $'*<offers>*</offers>' || exit 1
answer=\${answer##*<offers>}
print -r -- "\${\${answer%%</offers>*}//$'\\r'/}"
zpty -d asked
`;

const ZSH_SETUP = `
PROMPT=
autoload -Uz compinit
compinit -u -d ./dump
source ./ctl.zsh
bindkey '^I' complete-word
typeset -ga offers
compadd() {
  if [[ \${@[1,(i)(-|--)]} == *-[a-zA-Z]#[OAD]\\ * ]]; then builtin compadd "$@"; return; fi
  local -a found
  builtin compadd -A found "$@"
  offers+=($found)
  builtin compadd "$@"
}
show() { print -r -- '<offers>'; print -rl -- $offers; print -r -- '</offers>'; exit }
comppostfuncs=(show)
setopt extended_glob
print ready
`;
