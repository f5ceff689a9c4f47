import { Argument } from 'commander';
import type { CtlCommand } from '../base/command.js';
import type { Tools } from '../base/tools.js';
import { shapeOf, type CommandShape } from '../base/shape.js';

type Script = (root: CommandShape) => string;

const scripts: Readonly<Record<string, () => Promise<Script>>> = {
  bash: async () => (await import('../completion/bash.js')).bashScript,
  zsh: async () => (await import('../completion/zsh.js')).zshScript,
  fish: async () => (await import('../completion/fish.js')).fishScript,
};

export function build(completion: CtlCommand, { groups, terminal }: Tools): void {
  completion
    .description(
      'Print a script that makes your shell complete commands, options and their values.',
    )
    .addArgument(new Argument('<shell>', 'Your shell').choices(Object.keys(scripts)))
    .example('source <(ctl completion bash)', 'in ~/.bashrc')
    .example('source <(ctl completion zsh)', 'in ~/.zshrc, after compinit')
    .example('ctl completion fish | source', 'in ~/.config/fish/config.fish')
    .action(async (shell: string) => {
      const load = scripts[shell];
      if (!load) throw new Error(`no completion script for ${shell}`);
      const [script] = await Promise.all([load(), groups.fillAll()]);
      const text = script(shapeOf(groups.root));
      terminal.out.write(terminal.json ? `${JSON.stringify({ shell, script: text })}\n` : text);
    });
}
