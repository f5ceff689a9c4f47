import type { CommandShape } from '../../packages/ctl/src/base/shape.js';

/** A command line as words, without its quotes. */
export function wordsOf(line: string): string[] {
  const words = line.match(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g) ?? [];
  return words.map((word) => word.replaceAll(/'([^']*)'|"([^"]*)"/g, '$1$2'));
}

/** What is wrong with a call of `ctl`, as far as its help tells. */
export function faultOfCtl(line: string, tree: CommandShape): string | undefined {
  const words = wordsOf(line).slice(1);
  let command = tree;
  for (;;) {
    const [word = ''] = words;
    const next = command.commands.find(({ name, aliases }) => [name, ...aliases].includes(word));
    if (!next) break;
    command = next;
    words.shift();
  }
  // What follows is git's own.
  if (command.path.startsWith('ctl git ')) return undefined;
  const flags = new Map(
    command.options.flatMap(({ long, short, value }) => [
      [long, value],
      [short ?? long, value],
    ]),
  );
  let given = 0;
  for (let at = 0; at < words.length; at++) {
    const word = words[at]!;
    if (word === '--') given += words.length - (at = words.length);
    else if (word === '-' || !word.startsWith('-')) given++;
    else if (!flags.has(word)) return `no flag ${word}`;
    else if (flags.get(word) !== null) at++;
  }
  const takes = command.arguments.length;
  if (takes === 0 && given > 0) return `${words[0]} is no command of ${command.path}`;
  const needed = command.arguments.filter(({ required }) => required).length;
  return given < needed && !words.includes('--') ? `needs ${needed} arguments` : undefined;
}
